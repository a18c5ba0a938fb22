"""Selects the tests for a module: its mirrored test file, then the test files that import it."""

import ast
import json
import re
from pathlib import Path

__all__ = ["FOLDERS", "Choice"]

# Package of each folder; the first match of a path counts.
FOLDERS = {
    "src/weft": "weft", "hw": "weft.hw", "sim": "weft.sim", "boards": "weft.boards",
    "verif": "verif",
}
START = 0.3  # seconds to import a test file
UNKNOWN = {"quick": 2.0}  # duration of a test file that is not recorded


class Choice:
    """The test files of a tree that reach a module.

    Imports are read from the sources, also inside functions. An import of a name that a package
    re-exports counts as an import of the module that defines it. Modules of ``tests/support`` have
    no package. A test with a fixture of ``tests/conftest.py`` also imports what that file imports.

    Parameters
    ----------
    root : Path
        The root of the tree.
    """

    def __init__(self, root: Path):
        self.root = root
        self.files = {}  # by module name
        for folder, package in FOLDERS.items():
            for path in sorted((root / folder).rglob("*.py")):
                inner = path.relative_to(root / folder).with_suffix("").parts
                name = ".".join([package, *inner]).removesuffix(".__init__")
                self.files[name] = path.relative_to(root).as_posix()
        for path in sorted((root / "tests" / "support").glob("*.py")):
            self.files[path.stem] = path.relative_to(root).as_posix()
        self._exports = {
            name: self._defined(name) for name, file in self.files.items()
            if file.endswith("/__init__.py")
        }
        self._imports = {name: self._imported(root / file) for name, file in self.files.items()}
        self.tests = sorted(
            path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py")
        )
        self._reached = self._tests()

    def tests_of(self, file: str, budget: float) -> list[str]:
        """The mirrored test files; then others that import the file, within a budget.

        Test files that share most words of the path come first, then near and short ones. The
        seconds of a test file count its quick tests in ``tests/durations.json``.
        """
        def words(path):
            return set(re.split(r"[/_.]", path))

        path = self.root / "tests" / "durations.json"
        durations = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        tests, spent = self.mirrored(file), 0.0
        for _, _, seconds, test in sorted(
            (-len(words(file) & words(test)), distance,
             durations.get(test, UNKNOWN).get("quick", 0.0) + START, test)
            for distance, test in self.importing(file)
        ):
            if spent + seconds <= budget:
                spent += seconds
                tests.append(test)
        return tests

    def mirrored(self, file: str) -> list[str]:
        """For ``hw/x/y.py``: ``tests/hw/x/test_y.py`` and ``test_y_*.py``, if they exist."""
        folder, name = self._mirror(file)
        pattern = re.compile(rf"{re.escape(folder)}/test_{re.escape(name)}(_\w+)?\.py")
        return [test for test in self.tests if pattern.fullmatch(test)]

    def importing(self, file: str) -> list[tuple[int, str]]:
        """The other test files that import a file, each after the number of imports between.

        For a file that no test imports (a script of the kit), the tests of its mirrored folder.
        """
        module = next(name for name, path in self.files.items() if path == file)
        mirrored = self.mirrored(file)
        steps = {module: 0}
        queue = [module]
        for name in queue:
            for other, imported in self._imports.items():
                if name in imported and other not in steps:
                    steps[other] = steps[name] + 1
                    queue.append(other)
        found = []
        for test, imported in self._reached.items():
            distances = [steps[name] + 1 for name in imported if name in steps]
            if distances and test not in mirrored:
                found.append((min(distances), test))
        if not found and not mirrored:
            folder = self._mirror(file)[0]
            while not (self.root / folder).is_dir():
                folder = folder.rpartition("/")[0]
            found = [(1, test) for test in self.tests if test.rpartition("/")[0] == folder]
        return sorted(found)

    def _mirror(self, file):
        """The folder with the tests of a file, and the file's name."""
        path = re.sub(r"^src/weft/", "", file).removesuffix(".py")
        folder, _, name = f"tests/{path}".rpartition("/")
        return folder, name

    def _defined(self, package):
        """``name -> module`` for the imports of a package's ``__init__.py``."""
        tree = ast.parse((self.root / self.files[package]).read_text(encoding="utf-8"))
        return {
            alias.asname or alias.name: node.module
            for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
        }

    def _imported(self, path):
        """The modules that a file imports."""
        found = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    exported = self._exports.get(node.module, {}).get(alias.name)
                    found.add(whole if whole in self.files else exported or node.module)
        return {name for name in found if name in self.files}

    def _tests(self):
        """``test file -> modules that it imports``."""
        shared = self.root / "tests" / "conftest.py"
        fixtures, shared_imports = None, set()
        if shared.is_file():
            names = [
                node.name for node in ast.parse(shared.read_text(encoding="utf-8")).body
                if isinstance(node, ast.FunctionDef) and node.decorator_list
            ]
            fixtures = re.compile(rf"\b({'|'.join(names)})\b") if names else None
            shared_imports = self._imported(shared)
        found = {}
        for test in self.tests:
            path = self.root / test
            found[test] = self._imported(path)
            if fixtures and fixtures.search(path.read_text(encoding="utf-8")):
                found[test] |= shared_imports
        return found
