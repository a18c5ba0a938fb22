"""The documents are up to date: example, cycle counts, links, and names of files and objects."""

import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

from weft import cli
from weft.cli.info import cycle_counts
from weft.cli.performance import PerformanceRecords
from weft.config import Config
from weft.demo import digits_images, digits_network
from weft.golden import clamp, matmul_bf16, to_bfloat16
from weft.mac_cells import MAC_CELLS
from weft.targets import TARGETS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *(ROOT / "docs").glob("*.md"),
    *(page for name in ("learn", "results") for page in (ROOT / "docs" / name).glob("*.md")),
])
DESIGNS = {
    "8 x 8 PEs": Config(), "4 x 4 PEs, depth 4": Config(rows=4, cols=4, depth=4),
    "4 x 4 PEs, BF16": Config(dtype="bf16"),
}
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def table(text, head):
    """The rows of the table whose first line starts with ``head``, as lists of cells."""
    lines = text[text.index(head) :].split("\n\n")[0].splitlines()
    return [cells(line) for line in lines[2:]]


def test_example_runs(capsys):
    [code] = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    space = {}
    exec(compile(code, "README.md", "exec"), space)
    a, b, c, record = (space[name] for name in ("a", "b", "c", "record"))
    assert c.dtype == np.int32
    assert np.array_equal(c, a.astype(int) @ b)
    printed = f"{record.cycles} {record.utilization:.1%} {record.bytes_in}\n"
    assert capsys.readouterr().out == printed
    x, w, bias = space["x"], space["w"], np.ones(32, np.float32)
    z = to_bfloat16(clamp(matmul_bf16(x, w, start=bias), low=np.float32(0)))
    assert space["z"].tobytes() == z.tobytes()


def test_cycles_equal_the_cycle_model():
    rows = table(README, "| design | MAC/cycle |")
    assert [row[0] for row in rows] == list(DESIGNS)
    for design, *said in rows:
        config = DESIGNS[design]
        cold, _, steady = cycle_counts(config, 64, 64, 64)
        resident = cycle_counts(config, 8, 8, 8)[1]
        used = 64**3 / steady / config.peak
        assert said == [
            str(config.peak), f"{cold:,} cycles", f"{steady:,.0f} cycles ({used:.1%})",
            f"{resident} cycles",
        ]


def test_printed_layers_equal_the_cycle_model():
    pattern = r"layer \d +(\d+) x (\d+) x (\d+) +([\d,]+) +([\d,]+) +([\d.]+%)"
    layers = re.findall(pattern, README)
    assert [tuple(map(int, layer[:3])) for layer in layers] == [
        (450, 64, 64), (450, 64, 32), (450, 32, 10),
    ]
    with digits_network("int8").compile(Config(), activations=True).open("golden") as session:
        records = session(digits_images()[0], stats=True)[1]
    total = 0
    for (*shape, cycles, predicted, used), record in zip(layers, records, strict=True):
        m, k, n = map(int, shape)
        taken = record.stats.cycles
        total += taken
        assert cycles == predicted == f"{taken:,}"
        assert used == f"{m * k * n / cycle_counts(Config(), m, k, n)[2] / Config().peak:.1%}"
    assert re.search(rf"all +{total:,} +{total:,} +yes", README)


def test_the_rates_of_the_readme_are_the_measured_ones():
    latest = PerformanceRecords(ROOT / "results", ROOT / "docs" / "results").latest
    large, small, smallest = (latest[name].rate for name in ("ecp5-85f", "ecp5-25f", "ice40up5k"))
    said = (
        f"reaches {large:.0f} GMAC/s in an LFE5U-85F, {small:.0f} in an LFE5U-25F,"
        f" and {smallest:.1f} in an iCE40UP5K"
    )
    assert said in " ".join(README.split())


def test_each_command_of_the_readme_gives_the_line_below(capsys, monkeypatch, tmp_path):
    said = re.search(r"```\n(digits_cnn: .*?)\n```", README, re.S)[1].replace("\n", " ")
    pattern = r"^weft (\w+ examples/digits_cnn.tflite --board .*?)(?: +#.*)?$"
    commands = re.findall(pattern, README, re.M)
    assert [command.split()[0] for command in commands] == ["report", "run", "compile"]
    monkeypatch.chdir(ROOT)
    for command in commands:
        # The simulation has the same first line, and compiles for long.
        command = command.replace("--on sim", "--on golden")
        assert cli.main(command.replace("digits.weft", str(tmp_path / "d.weft")).split()) == 0
        assert capsys.readouterr().out.splitlines()[0] == said


@pytest.mark.parametrize("page", ["README.md", "docs/networks.md"])
def test_the_placement_line_is_the_printed_one(page, tmp_path, capsys):
    model, output = ROOT / "examples" / "digits_cnn.tflite", tmp_path / "digits.weft"
    assert cli.main(["compile", str(model), "--board", "icebreaker", "-o", str(output)]) == 0
    printed = capsys.readouterr().out.splitlines()[0]
    assert printed in " ".join((ROOT / page).read_text(encoding="utf-8").split())


def test_all_commands_are_listed():
    said = [row[0] for row in table(README, "| command | what it does |")]
    names = [module.__name__.rpartition(".")[2] for module in cli.SUBCOMMANDS]
    assert said == [f"`weft {name}`" for name in names]


def test_all_mac_cells_are_described():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    said = [re.match("`(.*?)`", row[0])[1] for row in table(text, "| `Config.mac_cell` |")]
    suffixes = [target.mac_suffix for target in TARGETS.values() if target.mac_suffix]
    families = {
        re.sub("|".join(f"{suffix}$" for suffix in suffixes), "", name) for name in MAC_CELLS
    }
    assert len(said) == len(families) and set(said) == families


@pages
def test_link_targets_exist(page):
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    ours = [link for link in links if not link.startswith("https://")]
    assert [link for link in ours if not (page.parent / link).exists()] == []


def test_readme_has_links():
    assert len(re.findall(r"\]\(docs/\w+\.md\)", README)) >= 4


@pages
def test_named_files_exist(page):
    text = page.read_text(encoding="utf-8")
    names = re.findall(r"`((?:src|hw|sim|boards|verif|tests|tools|docs)(?:/[\w.-]+)*/?)`", text)
    # NAME is the name of a reader's own file.
    assert [name for name in names if not (ROOT / name).exists() and "NAME" not in name] == []


@pages
def test_named_objects_exist(page):
    text = page.read_text(encoding="utf-8")
    missing = []
    for name in re.findall(r"`((?:weft|verif)(?:\.\w+)+)", text):
        if name.startswith("weft.torch") and importlib.util.find_spec("torch") is None:
            # The test environment has no PyTorch: the names are in the source.
            source = (ROOT / "src/weft/torch/__init__.py").read_text(encoding="utf-8")
            if not all(f'"{part}"' in source for part in name.split(".")[2:]):
                missing.append(name)
            continue
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []


@pytest.mark.parametrize("name", ["weft.sim.nothing", "weft.config.Nothing"])
def test_detects_a_name_without_an_object(name):
    with pytest.raises((ImportError, AttributeError)):
        pkgutil.resolve_name(name)


def test_the_package_exports_its_names():
    package = importlib.import_module("weft")
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
