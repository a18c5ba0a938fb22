"""The rules of the tree: allowed imports of each layer, and forbidden contents of files."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Allowed imports of each layer besides the standard library. The first match of a path counts.
BASE = tuple(
    f"weft.{name}" for name in (
        "config", "hints", "formats", "frames", "registers", "commands",
        "geometry", "timing", "cycles", "buses", "ip", "register_map", "descriptors", "dtypes",
        "job_rules", "latencies", "serial_schedule", "mac_cells", "registry", "targets",
        "checks", "design", "designs", "files", "language_core", "network_core", "sdram",
        "usb_ids", "visible",
    )
)
PUBLIC = ("weft.config", "weft.host")  # what `import weft` itself reaches
NETWORK = (
    *BASE, "weft.golden", "weft.host", "weft.models", "weft.quantize", "numpy", "ml_dtypes",
)
LAYERS = {
    "src/weft/__init__.py": (*PUBLIC, "weft.models"),
    "src/weft/__main__.py": ("weft.cli",),
    "src/weft/golden/": (*BASE, "weft.golden", "numpy", "ml_dtypes"),
    "src/weft/tables.py": ("rich",),
    "src/weft/checks.py": ("numpy", "ml_dtypes"),
    "src/weft/quantize.py": ("weft.checks", "numpy"),
    "src/weft/host/golden": (*BASE, "weft.host", "weft.golden", "numpy", "ml_dtypes"),
    "src/weft/host/serial_port": (*BASE, "weft.host", "serial"),
    "src/weft/host/": (*BASE, "weft.host", "weft.quantize", "numpy", "ml_dtypes"),
    "src/weft/kit/files/amaranth_soc": (*BASE, "weft.host", "weft.hw", "amaranth", "numpy"),
    "src/weft/kit/files/": (
        "cocotb", "cocotb_tools", "cocotbext", "litex", "migen", "numpy",
        "test_weft", "weft_commands", "weft_data", "weft_driver", "weft_link", "weft_litex",
        "weft_master", "weft_network_bench", "weft_packing", "weft_pauses", "weft_pins",
    ),
    "src/weft/kit/bench": (*BASE, "weft.host", "weft.kit", "numpy"),
    "src/weft/kit/": (
        *BASE, "weft.hw", "weft.kit", "weft.cli.info", "weft.boards", "amaranth",
        "peakrdl_cheader", "peakrdl_html", "peakrdl_ipxact", "systemrdl",
    ),
    "src/weft/project/files/": (
        *BASE, "weft.boards", "weft.cli", "weft.host", "weft.models", "weft.sim", "cocotb", "litex",
        "litex_boards", "numpy", "weft_link", "weft_litex",
    ),
    "src/weft/project/": (*BASE, "weft.boards", "weft.kit.folder", "weft.project"),
    "src/weft/models/tflite/": (
        *NETWORK, "ai_edge_litert", "flatbuffers", "tflite", "tflite_micro",
    ),
    "src/weft/models/onnx/": (*NETWORK, "onnx", "onnxruntime"),
    "src/weft/models/report/": (*NETWORK, "weft.tables", "matplotlib", "rich"),
    "src/weft/models/media": (*NETWORK, "PIL"),
    "src/weft/models/language/": (*NETWORK, "gguf", "safetensors", "tokenizers"),
    "src/weft/models/target": (*NETWORK, "weft.boards"),
    "src/weft/models/": NETWORK,
    "src/weft/jax/": (*NETWORK, "weft.offload", "weft.jax", "jax", "onnx", "onnxruntime"),
    "src/weft/torch/": (*NETWORK, "weft.offload", "weft.torch", "torch", "functorch"),
    "src/weft/offload/": (*NETWORK, "weft.offload", "weft.tables"),
    "src/weft/explore/": (
        *NETWORK, "weft.boards", "weft.explore", "weft.hw", "weft.sim.cache", "weft.tasks",
        "amaranth", "matplotlib",
    ),
    "src/weft/bench/": (*BASE, "weft.bench", "weft.boards", "weft.sim.cache", "weft.tasks"),
    "src/weft/regress/": (
        *BASE, "weft.golden", "weft.host", "weft.hw", "weft.regress", "weft.sim", "weft.tasks",
        "numpy", "ml_dtypes",
    ),
    "src/weft/tasks/": ("weft.tasks", "weft.files", "weft.sim.cache", "distributed", "psutil"),
    "src/weft/demo/": ("weft.models", "numpy"),
    "src/weft/cli/devices": ("weft", "serial"),
    "src/weft/cli/demo": ("weft", "numpy", "rich", "matplotlib", "PIL"),
    "src/weft/cli/": ("weft", "numpy", "ml_dtypes", "rich", "matplotlib", "amaranth"),
    "src/weft/": BASE,
    "hw/bus/amaranth_soc": (*BASE, "weft.hw", "amaranth", "amaranth_soc"),
    "hw/usb/": (*BASE, "weft.hw", "amaranth", "luna", "usb_protocol"),
    "hw/": (*BASE, "weft.hw", "amaranth"),
    "boards/": (*BASE, "weft.hw", "weft.boards", "amaranth", "amaranth_boards"),
    "sim/gates/gate_network": (*BASE, "weft.host", "weft.models", "weft.sim", "numpy"),
    "sim/gates/gate_language": (*BASE, "weft.host", "weft.models", "weft.sim"),
    "sim/": (
        *BASE, "weft.hw", "weft.golden", "weft.host", "weft.quantize", "weft.sim",
        "amaranth", "cocotb", "cocotb_tools", "cocotbext", "find_libpython", "ml_dtypes", "numpy",
    ),
    # Imports everything; no layer above may import it, so only tests and tools do.
    "verif/yosys": (*BASE, "weft.sim", "amaranth", "platformdirs", "wasmtime"),
    "verif/": ("weft", "verif", "amaranth", "cocotb", "cocotbext", "ml_dtypes", "numpy"),
}


def modules(*folders):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


SOURCES = modules("src", "hw", "sim", "boards", "verif")
PYTHON = [*SOURCES, *modules("tests", "tools")]
NOT_OURS = {".git", ".venv", "build", "out", "dist", "__pycache__"}


def relative(path):
    return path.relative_to(ROOT).as_posix()


def module(path):
    """The module of a file: ``hw/core.py`` is ``weft.hw.core``."""
    name = relative(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if name.startswith("verif"):
        return name
    return name.removeprefix("src.") if name.startswith("src.") else f"weft.{name}"


OURS = {*SOURCES}
MODULES = {module(path) for path in SOURCES}


def imports(tree, package=""):
    """Names and lines of all modules that a file imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:  # relative
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield (whole if whole in MODULES else base), node.lineno


def allowed(name, rule):
    if name.split(".")[0] in sys.stdlib_module_names or name == "__future__":
        return True
    if name == "weft":
        return all(allowed(part, rule) for part in PUBLIC)
    return any(name == entry or name.startswith(entry + ".") for entry in rule)


class WithoutTypes(ast.NodeTransformer):
    """Drops what ``if TYPE_CHECKING`` guards: it is not imported when the program runs."""

    def visit_If(self, node):
        self.generic_visit(node)
        if getattr(node.test, "id", getattr(node.test, "attr", "")) == "TYPE_CHECKING":
            return node.orelse or None
        return node


def package_of(path):
    if path not in OURS:
        return "weft.x"
    return module(path) if path.name == "__init__.py" else module(path).rpartition(".")[0]


def running(path, tree):
    """The modules that a file imports when the program runs, also inside functions."""
    tree = WithoutTypes().visit(tree)
    return {name for name, _ in imports(tree, package_of(path))} & MODULES


@functools.cache
def facts(path):
    """Of a file: its imports with their lines, those when the program runs, and its docstring."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    found, docstring = [*imports(tree, package_of(path))], ast.get_docstring(tree)
    if "TYPE_CHECKING" not in text:
        return found, {name for name, _ in found} & MODULES, docstring
    return found, running(path, tree), docstring


def violations(path, found, rule):
    return [f"{relative(path)}:{line} imports {name}" for name, line in found
            if not allowed(name, rule)]


def test_every_source_keeps_its_layer():
    found = []
    for path in SOURCES:
        rule = next(LAYERS[start] for start in LAYERS if relative(path).startswith(start))
        found += violations(path, facts(path)[0], rule)
    assert found == []


# Circles of imports that still exist. A circle that has vanished leaves this list.
CIRCLES: list[list[str]] = []


def circles(graph):
    """The modules of each circle: those that reach each other."""
    def reached(start):
        seen, after = set(), [start]
        while after:
            for name in graph.get(after.pop(), ()):
                if name not in seen:
                    seen.add(name)
                    after.append(name)
        return seen

    reach = {name: reached(name) for name in graph}
    return sorted({
        tuple(sorted(other for other in graph if other in reach[name] and name in reach[other]))
        for name in graph if name in reach[name]
    })


def test_imports_have_no_circle():
    """Imports lead in one direction, also those inside functions."""
    graph = {module(path): facts(path)[1] for path in SOURCES}
    assert [list(circle) for circle in circles(graph)] == CIRCLES


def test_a_circle_is_seen_inside_functions():
    files, hints = ROOT / "src/weft/files.py", ROOT / "src/weft/hints.py"
    inside = "def f():\n    from weft import files"

    def import_graph(texts):
        return {module(path): running(path, ast.parse(text)) for path, text in texts.items()}

    assert circles(import_graph({files: "import weft.hints", hints: inside})) == [
        ("weft.files", "weft.hints")
    ]
    typed = "if TYPE_CHECKING:\n    from weft import files\nelse:\n    import math"
    assert circles(import_graph({files: "import weft.hints", hints: typed})) == []


@pytest.mark.parametrize("source, name", [
    ("import numpy", "numpy"),
    ("def f():\n    from weft.golden import matmul", "weft.golden.matmul"),
    ("from weft import sim", "weft.sim"),
    ("from .. import sim", "weft.sim"),
    ("import hw.core", "hw.core"),
    ("from verif.formal import rules", "verif.formal.rules"),
])
def test_detects_a_forbidden_import(source, name):
    path = ROOT / "hw" / "core.py"
    found = violations(path, imports(ast.parse(source), package_of(path)), LAYERS["hw/"])
    assert [text.rpartition(" ")[2] for text in found] == [name]


def test_the_command_line_imports_nothing_heavy():
    """``weft --help`` is fast, and ``weft doctor`` runs without the other packages."""
    found = []
    for path in (ROOT / "src/weft/cli/__init__.py", ROOT / "src/weft/cli/doctor.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tree.body = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        rule = ("weft.cli", "weft.hints", "weft.hints")
        found += [name for name, _ in imports(tree) if not allowed(name, rule)]
    assert found == []


def test_sources_are_imported_by_their_installed_names():
    """``import hw`` from the root would make second copies of the classes."""
    found = [
        f"{relative(path)}:{line} imports {name}"
        for path in PYTHON
        for name, line in facts(path)[0]
        if name.split(".")[0] in {"hw", "sim", "boards", "src"}
    ]
    assert found == []


def test_every_file_has_a_docstring():
    assert [relative(path) for path in PYTHON if not facts(path)[2]] == []


def texts():
    """The text of every file that git tracks; without git, of every file."""
    git = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True,
    )
    if git.returncode == 0:
        paths = [ROOT / name for name in git.stdout.split("\0") if name]
    else:
        paths = [p for p in ROOT.rglob("*") if not NOT_OURS & set(p.relative_to(ROOT).parts)]
    for path in sorted(paths):
        if path.is_file() and path.suffix not in {".npz", ".png", ".tflite", ".weft"}:
            yield path, path.read_text(encoding="utf-8")


# Patterns with a letter in brackets, so that this file does not match itself.
BANNED = {
    "work left to do": r"\b(TO[D]O|FIX[M]E|XX[X])\b",
    "a suppressed rule": r"#\s*(no[q]a|ruff:\s*no[q]a|type:\s*ig[n]ore)",
    "a path of one machine": r"(?<![\w.])/(hom[e]|roo[t]|wor[k]|User[s]|tm[p])/[a-z.]",
}


@pytest.mark.parametrize("what", BANNED)
def test_no_file_contains(what):
    pattern = re.compile(BANNED[what])
    found = [
        f"{relative(path)}:{number}: {line.strip()[:80]}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)
    ]
    assert found == []


LOCKED = (
    r"# .*|[a-z0-9.-]+==[0-9a-z.]+( ; [a-z0-9_ =\"]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?"
)


def test_locks_name_no_source():
    """Locks have versions and hashes, but no addresses."""
    found = [
        f"{path.name}: {line}"
        for path in ROOT.glob("locks/*.txt")
        for line in path.read_text(encoding="utf-8").splitlines()
        if not re.fullmatch(LOCKED, line)
    ]
    assert found == []
