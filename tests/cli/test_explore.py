"""``weft explore`` and ``weft estimate`` from end to end, with a stand-in of the tools."""

import dataclasses
import functools
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from explore_points import FAKE, network_records, records, single_port_records

import weft
from weft.boards.catalog import BOARDS
from weft.boards.designs import NETWORKS_25F, NETWORKS_UP5K
from weft.boards.devices import DEVICES
from weft.boards.toolchain import Toolchain
from weft.cli import build, main
from weft.cli.explore_result import clock_of
from weft.config import Config
from weft.designs import design_from_toml
from weft.explore import candidates, findings, flow, space
from weft.explore.model import family_of
from weft.explore.network_features import ram_blocks
from weft.explore.points import PACKED, Point, PointOutcome, PointStore
from weft.tasks import engine
from weft.tasks.store import Claimant

DIGITS = str(Path("examples/digits_cnn.tflite").absolute())
SEARCH = ["--board", "ulx3s-25f", "--workload", "16x32x16", "--jobs", "2"]


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """A file of made-up points."""
    path = tmp_path_factory.mktemp("recorded") / "points.json"
    ice40 = records(12, DEVICES["iCE40UP5K"]) + single_port_records()
    findings.write(path, records() + ice40 + network_records())
    return path


@pytest.fixture
def run(monkeypatch, tmp_path, capsys, points):
    """``run(*arguments)``: exit code and output."""
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path / "build"))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(findings, "FILE", points)
    monkeypatch.setattr(Toolchain, "set_up", lambda self: None)
    monkeypatch.setattr(flow, "PointSteps", functools.partial(flow.PointSteps, command=FAKE))
    for name, value in (("DRAWN", 60), ("FINALISTS", 9), ("ROUNDS", 1), ("NEARBY", 4)):
        monkeypatch.setattr(candidates, name, value)

    def ended(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out + said.err

    ended.folder = tmp_path
    return ended


def explored(run, *arguments):
    return run("explore", *SEARCH, "--designs", 3, "--seeds", 2, *arguments)


def test_finds_a_winner(run):
    code, said = explored(run)
    assert code == 0
    toml = run.folder / "out/explore/ulx3s-25f.toml"
    winner = Config.from_toml(toml)
    assert f"winner: {winner.name}, " in said
    assert re.search(rf"build:  weft build ulx3s-25f --config {toml.relative_to(run.folder)}"
                     r" --clock \d", said)
    assert said.count("lost:   ") == 2
    assert "engine: 2 workers in this process" in said


@pytest.mark.slow
def test_a_second_search_continues_and_repeats_nothing(run, monkeypatch):
    monkeypatch.setenv("FAKE_LOG", str(run.folder / "log"))
    assert "the store has 0 runs" in explored(run)[1]
    assert "the store has 6 runs" in explored(run)[1]  # 3 designs, 2 seeds
    with PointStore(run.folder / "build/explore.sqlite") as store:
        configs = {point.config for point, _ in store.all()}
    assert len(configs) == 6
    runs = [line.split()[:-1] for line in (run.folder / "log").read_text().splitlines()]
    assert sum(step == "synthesize" for step, *_ in runs) <= 6 + 3  # and a netlist for new seeds
    assert sum(step == "place" for step, *_ in runs) == len(store_keys(run))


def store_keys(run):
    with PointStore(run.folder / "build/explore.sqlite") as store:
        return {point.key for point, _ in store.all()}


def test_a_point_that_perhaps_nobody_runs_is_no_success(run, monkeypatch):
    claim, others = PointStore.claim, [Claimant("far", 7, "now")]
    monkeypatch.setattr(
        PointStore, "claim", lambda *args: others.pop() if others else claim(*args)
    )
    code, said = explored(run)
    assert code == 1 and "winner: " in said
    assert ": left to process 7 of far, which may have ended\n" in said


def test_a_budget_of_nothing_prints_estimates_only(run, monkeypatch):
    monkeypatch.setattr(Toolchain, "set_up", None)  # no tool is needed
    code, said = explored(run, "--budget", "0s")
    assert code == 0
    assert re.search(r"\d designs with exact cycles fit ulx3s-25f \(LFE5U-25F\) by their estimates,"
                     r" in 97% of its LUTs; \d are on the front of time and LUTs; the store has 0"
                     r" runs", said)
    assert said.endswith("Cycles are exact, LUTs and clocks are estimates.\n")


@pytest.mark.exit_code("explore", 1)
def test_the_budget_ends_a_search(run):
    code, said = explored(run, "--budget", "0.001s")
    assert code == 1
    assert "MISSED  no design fits ulx3s-25f; so far:" in said


def test_a_rate_that_nothing_reaches_is_missed(run):
    code, said = explored(run, "--rate", "1e9")
    assert code == 1
    rule = "MISSED  no design fits ulx3s-25f and reaches 1,000,000,000.0 a second"
    assert said.endswith(f"{rule}, by the estimates\n")


@pytest.mark.slow
def test_a_known_design_that_does_not_fit_by_its_estimate_loses_for_a_reason(run):
    explored(run, "--designs", 1, "--seeds", 1)
    large = Config(target="ecp5", rows=16, cols=16, dsp_cols=0)
    point = Point(BOARDS["ulx3s-25f"].device, large)
    with PointStore(run.folder / "build/explore.sqlite") as store:
        store.record(point, PointOutcome(used={"LUT": 900}, fmax=0.1, path="a to b"))
    code, said = explored(run, "--budget", "0s")
    assert code == 0
    assert re.search(rf"lost:   {large.name}, slower: .* at 0.1 MHz; critical path: a to b", said)


class Page(HTMLParser):
    """The links, the names and the sources of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names, self.sources = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.names.add(values.get("id"))
        if tag == "a":
            self.links += [values[key] for key in ("href", "xlink:href") if key in values]
        self.sources += [values[key] for key in ("src",) if key in values]


@pytest.mark.slow
def test_the_report_is_one_page(run):
    assert run("explore", "report")[0] == 2
    explored(run)
    point = Point(BOARDS["ulx3s-25f"].device, Config(target="ecp5", rows=3, cols=5))
    with PointStore(run.folder / "build/explore.sqlite") as store:
        store.record(point, PointOutcome(failure="time", detail="no <net> 'a'"))
    code, said = run("explore", "report")
    assert code == 0 and said.endswith("page: out/explore/report.html\n")
    text = (run.folder / "out/explore/report.html").read_text()
    page = Page(text)
    designs = [link for link in page.links if link.startswith("#design-")]
    assert {link[1:] for link in designs} <= page.names
    assert {"design-1", "design-2", "design-3"} <= {link[1:] for link in designs}
    assert all(link.startswith("#") for link in page.links)
    assert all(source.startswith("data:") for source in page.sources)
    assert "_blank" not in text  # a link opens the design in this page
    assert "<td class=l>time: no &lt;net&gt; &#x27;a&#x27;</td>" in text
    assert "<th class=l>design</th>" in text and "<th class=l>outcome</th>" in text
    assert "Time and area" in text and "Floorplan of the winner" in text
    assert "http" not in re.sub(r"http://www.w3.org/\S+", "", text)


@pytest.mark.slow
def test_records_points(run):
    code, said = run("explore", "record", "--file", "new.json", "--more", 2, "--jobs", 1,
                     "--bench", __file__.replace("tests/cli/test_explore.py",
                                                 "results/performance.json"))
    assert code == 0
    found = findings.read(run.folder / "new.json")
    assert sum(point.device.name == "LFE5U-25F" and not outcome.path.count("core.")
               for point, outcome in found) >= 2
    assert any(point.device.name == "iCE40HX8K" for point, _ in found)
    again, said = run("explore", "record", "--file", "new.json", "--more", 2, "--jobs", 1)
    assert again == 0


@pytest.mark.slow
def test_records_one_family(run):
    """Random network cores of the device, beside the points of the family."""
    arguments = ["explore", "record", "--file", "new.json", "--jobs", 1]
    networks = ["--family", "ice40-networks", "--device", "iCE40UP5K"]
    run(*arguments, "--more", 1)
    for more, options, count in ((2, [], 3), (3, ["--packed"], 6)):
        code, said = run(*arguments, *networks, "--more", more, *options)
        assert code == 0 and said.endswith(f"new.json: {count} points\n")
    found = findings.read(run.folder / "new.json")
    assert Counter((family_of(point.config), bool(outcome.fmax)) for point, outcome in found) == {
        ("ecp5", True): 1, ("ice40-networks", True): 2, ("ice40-networks", False): 3,
    }
    _, said = run(*arguments, *networks, "--store", "other.sqlite")
    assert said.count(" on iCE40UP5K, ") == 5 and " on LFE5U-25F, " not in said


@pytest.mark.slow
def test_packs_the_cores_of_boards(run):
    """Boards whose FPGAs have the same die share a core."""
    arguments = ["explore", "record", "--file", "new.json", "--jobs", 1, "--boards", "--packed"]
    code, said = run(*arguments, "--family", "ecp5")
    assert code == 0
    found = findings.read(run.folder / "new.json")
    assert [(point.device.name, point.config, point.seed) for point, _ in found] == [
        ("LFE5U-25F", BOARDS["icepi-zero"].config, PACKED),
        ("LFE5U-45F", BOARDS["ulx3s-45f"].config, PACKED),
        ("LFE5U-85F", BOARDS["ecpix5-85f"].config, PACKED),
    ]
    code, said = run(*arguments)
    assert said.endswith("new.json: 5 points\n")


def test_prints_errors_and_coefficients(run):
    code, said = run("explore", "model")
    assert code == 0
    assert re.search(r"^ *ecp5 +30 +\d+\.\d%", said, re.M)
    assert re.search(r"^ *ecp5 +array +MACs in DSP, fip +\d", said, re.M)


def test_estimates_a_design(run):
    code, said = run("estimate", "--board", "ulx3s-25f", "--workload", "16x32x16", "8x8x8",
                     "--rows", 2, "--cols", 4)
    assert code == 0
    assert re.search(r"LUT +[\d,]+ +24,288 +\d+\.\d%", said)
    assert re.search(r"16x32x16 +[\d,]+ +[\d,]+ +[\d.]+", said)
    assert re.search(r"fmax +[\d.]+ MHz", said)


def test_estimates_no_time_on_a_wire_for_usb(run):
    code, said = run("estimate", "--board", "orangecrab-25f", "--workload", "16x32x16")
    assert code == 0
    assert re.search(r"16x32x16 +[\d,]+ +[\d,]+ +[\d.]+ +[\d,]+ +[\d,]+ +- ", said)


NETWORKS = ["--board", "ulx3s-25f", "--for", "networks", "--workload", DIGITS]


def test_estimates_a_core_for_networks(run):
    code, said = run("estimate", *NETWORKS, "--rows", 3, "--words", 1024, "--read-vectors", 1)
    assert code == 0
    core = dataclasses.replace(NETWORKS_25F.config.array, rows=3)
    config = dataclasses.replace(NETWORKS_25F.config, array=core, words=1024, read_vectors=1)
    program = weft.load(DIGITS).compile(config)
    assert f"{config.name} on ulx3s-25f (LFE5U-25F): 48 MAC/cycle" in said
    assert re.search(r"LUT +[\d,]+ +24,288 +\d+\.\d%", said)
    assert re.search(rf"RAM +{ram_blocks(config)} +56 +0 blocks at most", said)
    assert re.search(r"clock +110\.0 MHz +not known: the board's goal", said)
    assert re.search(
        rf"digits_cnn +{program.cycles:,} +{program.cycles:,} +{program.cycles / 110:,.2f} .*"
        rf" {program.memory_used:,} of 12,288", said
    )
    assert "nJ" not in said


ONE_PORT = ["--board", "icebreaker", "--for", "networks", "--workload", DIGITS]


def test_estimates_a_core_whose_memory_has_one_port(run):
    code, said = run("estimate", *ONE_PORT, "--words", 16384)
    config = dataclasses.replace(NETWORKS_UP5K.config, words=16384)
    assert code == 0 and f"{config.name} on icebreaker (iCE40UP5K): 16 MAC/cycle" in said
    for name, count, capacity in (("DSP", 8, 8), ("RAM", 30, 30), ("SPRAM", 2, 4)):
        assert re.search(rf"^ *{name} +{count} +{capacity} +0 blocks at most", said, re.M)
    assert re.search(r"fmax +37\.5 MHz +0\.0%", said)
    cycles = weft.load(DIGITS).compile(config).cycles
    us = cycles / 37.5
    assert re.search(rf"digits_cnn +{cycles:,} +{cycles:,} +{us:,.2f} ", said), said
    assert said.endswith("Cycles are exact. Microseconds have the error of fmax.\n")


def test_explores_cores_whose_memory_has_one_port(run):
    code, said = run("explore", *ONE_PORT, "--budget", "0s")
    assert code == 0
    # Those with more words take more cells: only the board's own core is one of them.
    assert "4 designs with exact cycles fit icebreaker (iCE40UP5K) by their estimates" in said
    own = weft.load(DIGITS).compile(NETWORKS_UP5K.config).cycles / 37.5
    assert f"icebreaker --for networks: {own:,.2f} us, " in said


@pytest.fixture
def few(monkeypatch):
    """A small space of network cores."""
    grid = space.GRID | {
        "rows": (1, 6), "cols": (4,), "depth": (2, 4), "lanes": (4,), "hop": (4,),
        "b_words": (512,), "lines": (512,), "read_vectors": (2,),
    }
    monkeypatch.setattr(space, "GRID", grid)
    for name, value in (("NETWORK_FINALISTS", 3), ("NETWORK_ROUNDS", 0)):
        monkeypatch.setattr(candidates, name, value)


def test_estimates_cores_for_networks_first(run, few):
    code, said = run("explore", *NETWORKS, "--budget", "0s")
    assert code == 0
    assert re.search(r"\d designs with exact cycles fit ulx3s-25f \(LFE5U-25F\) by their estimates,"
                     r" in 97% of its LUTs; \d are on the front of time and LUTs", said)
    assert re.search(r"6x4x4 lanes=4 hop=\d dsp_cols=\d scale_cycles=1 words=\d+ b_words=512", said)
    own = weft.load(DIGITS).compile(NETWORKS_25F.config).cycles / 110
    assert f"ulx3s-25f --for networks: {own:,.2f} us, " in said
    assert "are at 110 MHz, the clock of the board's core: too few cores were placed to" in said


@pytest.mark.slow
def test_places_cores_for_networks(run, few, monkeypatch):
    """One engine, store and report for both kinds of cores; nothing is run twice."""
    monkeypatch.setenv("FAKE_LOG", str(run.folder / "log"))
    search = [*NETWORKS, "--jobs", 2, "--designs", 2, "--seeds", 2]
    code, said = run("explore", *search)
    assert code == 0
    toml = Path("out/explore/ulx3s-25f-networks.toml")
    winner = design_from_toml(toml)
    cycles = weft.load(DIGITS).compile(winner).cycles
    assert f"winner: {winner.name}, {cycles / 102:,.2f} us, " in said  # its best seed
    [command] = re.findall(r"build:  weft (build ulx3s-25f .*)", said)
    arguments = rf"--for networks --config {toml} --clock 9\d(\.5)?"
    assert re.fullmatch(rf"build ulx3s-25f {arguments}", command)
    assert re.search(r"lost:   \w+-networks, slower: .* us, \d+\.\d% more, at 102.0 MHz; critical"
                     r" path: a to b", said)
    assert "nJ" not in said
    built = []
    monkeypatch.setattr(build, "_build", lambda board, *others: built.append(board.config) or 0)
    assert run(*command.split())[0] == 0 and built == [winner]
    places = (run.folder / "log").read_text().count("place")
    code, said = run("explore", *search, "--budget", "0s")
    assert places == 4 and "the store has 4 runs" in said and f"winner: {winner.name}, " in said
    assert (run.folder / "log").read_text().count("place") == places

    code, said = run("explore", "report")
    assert code == 0
    text = (run.folder / "out/explore/report.html").read_text()
    assert "on ulx3s-25f" in text and "[network_core]" in text and "Floorplan of the winner" in text
    assert "ulx3s-85f --for networks" in text  # another board
    assert "Estimated and measured clock" not in text and ">nJ<" not in text


@pytest.mark.slow
def test_a_known_core_that_does_not_hold_the_networks_has_no_figures(run, few):
    config = dataclasses.replace(NETWORKS_25F.config, words=16)
    point = Point(BOARDS["ulx3s-25f"].built_for("networks").device, config)
    run.folder.joinpath("build").mkdir()
    with PointStore(run.folder / "build/explore.sqlite") as store:
        store.record(point, PointOutcome(used={"LUT": 900}, fmax=99.0, path="a to b"))
    code, said = run("explore", *NETWORKS, "--budget", "0s")
    assert code == 0 and "the store has 1 runs" in said and "winner" not in said
    assert run("explore", "report")[0] == 0


@pytest.mark.exit_code("estimate", 1)
def test_a_design_that_does_not_fit_is_missed(run):
    code, said = run("estimate", "--board", "icebreaker", "--workload", "8x8x8", "--rows", 16,
                     "--cols", 16)
    assert code == 1
    assert "Outside the recorded range, so the errors may be larger: " in said
    assert re.search(r"MISSED  icebreaker has 5,280 LUT; the estimate is [\d,]+", said)


@pytest.mark.parametrize("arguments, text", [
    (["explore", "--workload", "8x8x8"], "--board must be given; see weft explore --help"),
    (["explore", "--board", "icebreaker"], "--workload must be given; see weft explore --help"),
    (["explore", "--board", "icebraker", "--workload", "8x8x8"], "did you mean icebreaker?"),
    (["explore", *SEARCH, "--cluster", "tcp://127.0.0.1:9"], "no scheduler with workers answers"),
    (["explore", "record", "--family", "ice40-networks", "--more", "1"],
     "--family must be ecp5 or ecp5-networks for LFE5U-25F, not ice40-networks"),
    (["explore", "record", "--family", "ice40-networks", "--device", "iCE40UP5K", "--more", "17"],
     "--more must be at most 6 for iCE40UP5K, not 17: its space has no other cores"),
    (["explore", "record", "--device", "LFE5U-26F"],
     "--device must be one of LFE5U-25F, LFE5U-45F, LFE5U-85F, iCE40UP5K, iCE40HX8K, not"),
    (["estimate", "--board", "icebreaker", "--workload", "none.tflite"], "none.tflite"),
    (["estimate", "--board", "tang-nano-20k", "--workload", "8x8x8"],
     "estimates need recorded points, and gowin has none: weft build tells what a design reaches"),
    (["estimate", "--board", "icebreaker", "--workload", "8x8x8", "--words", "512"],
     "words must be for a network core (--for), not for a product core"),
    (["estimate", "--board", "ecpix5-45f", "--for", "networks", "--workload", "8x8x8"],
     "ecpix5-45f has no network core"),
    (["estimate", *SEARCH[:2], "--for", "networks", "--workload", "8x8x8"],
     "workload must be a network (.tflite) on a network core, not the product 8x8x8"),
    (["explore", *SEARCH[:2], "--for", "networks", "--workload", DIGITS, "--objective", "energy"],
     "--objective must be latency, throughput or area for network cores, not energy"),
    (["explore", *SEARCH[:2], "--for", "networks", "--workload", "8x8x8"],
     "workload must be a network (.tflite) on a network core, not the product 8x8x8"),
])
def test_wrong_input_is_one_line(run, monkeypatch, arguments, text):
    monkeypatch.setattr(engine, "WAIT", 0.2)
    code, said = run(*arguments)
    assert code == 2
    last = said.splitlines()[-1]
    assert last.startswith("weft: error: ") and text in last


def test_a_wrong_budget_is_named(run, capsys):
    with pytest.raises(SystemExit):
        run("explore", "--budget", "2 hours")
    assert "budget must be a time as 90s, 30m or 2h, not '2 hours'" in capsys.readouterr().err


def test_the_clock_can_be_made_by_the_board():
    for name in ("ulx3s-25f", "icebreaker", "ice40-hx8k-evn"):
        board = BOARDS[name]
        clock = clock_of(board, 1.2 * board.clock)
        assert board.clock <= clock <= 1.2 * board.clock
    assert clock_of(BOARDS["icebreaker"], 1.0) is None
