"""``weft run``, ``weft compile`` and ``weft report`` with language models."""

import dataclasses
import json

import pytest
from digits import CNN
from language_models import SMALL, pieces, random_weights
from language_programs import blank, quantized, quantized_microgpt

import weft
from tools.llama2c_writer import model_file, tokenizer_file
from weft.cli import main
from weft.hints import visible
from weft.models.language import agreement
from weft.models.language.program import LanguageProgram
from weft.models.language_core.program import board_cores
from weft.models.target import board_target


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with small.bin, its tokenizer, and small.weft."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.bin").write_bytes(model_file(random_weights(SMALL, 5)))
    (folder / "tok300.bin").write_bytes(tokenizer_file(pieces()))
    weft.load(folder / "small.bin").compile().save(folder / "small.weft")
    return folder


@pytest.fixture
def said(capsys, folder, monkeypatch):
    """``said(code, words...)``: what a command prints on both outputs, with this exit code."""
    monkeypatch.chdir(folder)

    def run(code, *words):
        assert main([*words]) == code
        found = capsys.readouterr()
        lines = [line for line in found.err.splitlines() if not line.startswith("   ...  ")]
        return found.out, "\n".join(lines)

    return run


def test_run_prints_prompt_and_text(said, folder):
    out, err = said(0, "run", "small.weft", "--prompt", "the ants", "--tokens", "9")
    session = weft.load(folder / "small.weft").open()
    text = "".join(session.generate("the ants", 9))
    assert out == visible(f"the ants{text}", keep="\n\t") + "\n"
    assert err.startswith(
        f"on the golden model: 9 tokens after {session.prompt_tokens} of the prompt, in "
    )
    assert err.endswith(" s; ended by --tokens")


def test_run_takes_the_options_of_a_text(said, folder):
    out, err = said(
        0, "run", "small.weft", "--tokens", "30", "--temperature", "5", "--min-p", "0.01",
        "--seed", "4", "--stop", "d",
    )
    session = weft.load(folder / "small.weft").open()
    pieces = session.generate("", 30, temperature=5.0, min_p=0.01, seed=4, stop="d")
    assert out == visible("".join(pieces), keep="\n\t") + "\n"
    ends = {"stop text": "--stop", "tokens": "--tokens", "stop token": "a token that ends texts"}
    assert err.endswith(f"ended by {ends[session.ended]}")


def test_a_full_cache_is_told(said):
    _, err = said(0, "run", "small.weft", "--tokens", "500")
    assert err.endswith("ended by a full cache: it has 48 positions")


def test_what_a_terminal_obeys_is_escaped(said, monkeypatch):
    from weft.models.language.program import LanguageSession

    def generate(self, *args, **kwargs):
        self.ended = "tokens"
        yield "a\x1b[2J\n"

    monkeypatch.setattr(LanguageSession, "generate", generate)
    assert said(0, "run", "small.weft")[0] == "a\\x1b[2J\n\n"


def test_compile_writes_the_program(said, folder, tmp_path):
    out, _ = said(0, "compile", "small.bin", "-o", str(tmp_path / "a.weft"))
    assert (tmp_path / "a.weft").read_bytes() == (folder / "small.weft").read_bytes()
    lines = out.splitlines()
    assert lines[0].startswith("small: a language model of 28,192 weights (llama2.c); int8")
    assert lines[-1] == f"{tmp_path / 'a.weft'}: {(tmp_path / 'a.weft').stat().st_size:,} bytes"


def test_report_tells_sizes_and_agreement(said):
    out, _ = said(0, "report", "small.bin")
    lines = out.splitlines()
    # 2 layers of 32 * 32 * 2 + 16 * 32 * 2 + 3 * 32 * 64, and 300 * 32; 2 * 2 * 32 a position.
    assert "a token: 28,032 MAC, and 128 for each position before it" in lines[2]
    assert lines[2].endswith("the cache has 64 bytes a position")
    assert lines[3] == (
        "where it runs: on the golden model alone, no language core takes it: vocab must be a"
        " multiple of 8, not 300"
    )
    assert lines[4].startswith("perplexity ") and lines[5].startswith("equal greedy tokens ")
    found = json.loads(said(0, "report", "small.bin", "--json")[0])
    assert found["macs_per_token"] == 28032 and found["positions"] == 48
    assert f"KL {found['divergence']:.5f}" in lines[4]
    assert "divergence" not in json.loads(said(0, "report", "small.weft", "--json")[0])


SIMULATES = "simulates it, --on golden computes the same"


@pytest.mark.parametrize("layers, where", [
    (1, (
        "on a language core, which weft build ulx3s-85f --for language makes, or --for"
        f" language-sdram for one with an SDRAM; --on sim {SIMULATES}"
    )),
    # 420,000 weights exceed the 393,216 bytes of the core without an SDRAM.
    (6, (
        "on a language core with an SDRAM, which weft build ulx3s-85f --for language-sdram makes;"
        f" --on sim --board ulx3s-85f --for language-sdram {SIMULATES}"
    )),
])
def test_report_names_the_cores_that_hold_the_model(said, tmp_path, layers, where):
    shape = dataclasses.replace(SMALL, dim=64, hidden=256, vocab=304, layers=layers)
    program = LanguageProgram("blank", "GGUF", blank(shape), pieces(304), 48)
    program.save(tmp_path / "blank.weft")
    out, _ = said(0, "report", str(tmp_path / "blank.weft"))
    assert out.splitlines()[3] == f"where it runs: {where}"


def test_the_cores_of_a_report_are_those_of_the_boards():
    for weights, board in ((quantized(), "ulx3s-85f"), (quantized_microgpt(), "icebreaker")):
        for purpose, core in board_cores(weights).items():
            config = board_target(board, purpose).config
            assert dataclasses.replace(config, target="generic") == core


@pytest.mark.slow
def test_a_model_of_few_positions_is_compared(said, tmp_path):
    weights = random_weights(dataclasses.replace(SMALL, positions=8), 5)
    (tmp_path / "short.bin").write_bytes(model_file(weights))
    (tmp_path / "tok300.bin").write_bytes(tokenizer_file(pieces()))
    out, err = said(0, "run", str(tmp_path / "short.bin"), "--check", "float")
    assert "nan" not in out and err == ""


def test_report_counts_a_classifier_of_its_own(said, tmp_path):
    shape = dataclasses.replace(SMALL, layers=1, kv_heads=1)
    file = tmp_path / "untied.bin"
    file.write_bytes(model_file(random_weights(shape, 5, tied=False)))
    (tmp_path / "tok300.bin").write_bytes(tokenizer_file(pieces()))
    weft.load(file).compile().save(tmp_path / "untied.weft")
    out, _ = said(0, "report", str(tmp_path / "untied.weft"))
    # 2 * 300 * 32, and 32 * 32 * 2 + 8 * 32 * 2 + 3 * 32 * 64 + 2 * 32 of the layer, and 32.
    assert out.startswith("untied: a language model of 28,000 weights (llama2.c)")
    assert out.splitlines()[1].startswith("dim 32, 1 layer, 4 heads, 1 head of K and V, hidden 64")


def test_a_token_and_an_empty_stop(said):
    assert "on the golden model: 1 token after " in said(0, "run", "small.weft", "--tokens", "1")[1]
    _, err = said(2, "run", "small.weft", "--stop", "")
    assert err == "weft: error: --stop must be a text of 1 character or more, not ''"


def test_the_check_against_float_has_limits(said, monkeypatch):
    out, _ = said(0, "run", "small.bin", "--check", "float")
    assert [line.split()[0] for line in out.splitlines()] == ["perplexity", "equal"]


@pytest.mark.slow
def test_weights_of_int4(said, tmp_path):
    """They are compared beside those of int8, whose limits alone are kept."""
    out, _ = said(0, "run", "small.bin", "--weights", "int4", "--check", "float")
    lines = out.splitlines()
    starts = ["int8: perplexity", "int8: equal", "int4: perplexity", "int4: equal"]
    assert [" ".join(line.split()[:2]) for line in lines[:4]] == starts
    assert lines[4] == "the limits are those of int8; int4 has none"
    divergences = [float(lines[n].split("KL ")[1]) for n in (0, 2)]
    assert divergences[1] > 5 * divergences[0]
    program = str(tmp_path / "int4.weft")
    out, _ = said(0, "compile", "small.bin", "--weights", "int4", "-o", program)
    assert "(llama2.c); int4 weights, int8 cache, int16 maps" in out
    assert json.loads(said(0, "report", program, "--json")[0])["weight_type"] == "int4"
    _, err = said(2, "run", program, "--weights", "int8")
    assert err.endswith("a program, which has weights of int4; weft compile makes one")


def test_a_broken_limit_is_exit_code_1(said, monkeypatch):
    monkeypatch.setattr(agreement, "MIN_GREEDY", 1.01)
    out, _ = said(1, "run", "small.bin", "--check", "float")
    assert out.splitlines()[2].startswith("equal greedy tokens must be at least 101%, not ")


@pytest.mark.parametrize("words, text", [
    (["run", "small.weft", "--on", "sim"], "vocab must be a multiple of 8, not 300"),
    (["run", "small.weft", "--board", "ulx3s-85f"],
     "--board must not be given for the language model small.weft here"),
    (["run", "small.weft", "--baud", "9600"], "--baud must be"),
    (["compile", "small.bin", "--board", "ulx3s-85f", "-o", "x.weft"], "small.bin here"),
    (["compile", "small.bin", "--c", "c", "-o", "x.weft"], "--c must be for a network of"),
    (["compile", "small.weft", "-o", "x.weft"], "must be a language model, not a program of one"),
    (["report", "small.bin", "--html", "x.html"], "--html must be for a network of operators"),
    (["report", "small.bin", "--against", "icebreaker"], "--against must be for a network of"),
    (["run", "small.weft", "--input", "x.npy"], "--input must be for a network of operators"),
    (["run", "small.weft", "--output", "x.npy"], "--output must be for a network of operators"),
    (["run", "small.weft", "--layers"], "--layers must be for a network of operators"),
    (["run", "small.weft", "--check", "tflm"], "--check must be float for a language model, not"),
    (["run", "small.weft", "--check", "float"], "needs the model in float32, not the program"),
    (["run", "small.bin", "--check", "float", "--prompt", "a"], "must not be with --check"),
    (["run", "small.weft", "--min-p", "0.1"], "--min-p must be with a temperature above 0"),
    (["run", "small.weft", "--temperature", "0.001"], "must be 0, or in 0.01..100, not 0.001"),
    (["run", "small.weft", "--prompt", "xyz" * 40], "the prompt must have at most 47 tokens"),
    (["run", "small.weft", "--tokenizer", "tok300.bin"], "tokenizer must be for a .bin file"),
    (["run", str(CNN), "--prompt", "a"], "--prompt must be for a language model"),
    (["run", str(CNN), "--weights", "int4"], "--weights must be for a language model"),
    (["report", str(CNN), "--weights", "int4"], "--weights must be for a language model"),
    (["run", str(CNN), "--check", "float"], "--check float must be for a language model"),
    (["boards", "small.bin"], "small.bin is a language model: weft run, weft compile and weft"),
    (["explore", "--board", "icebreaker", "--workload", "small.weft"], "is a language model"),
    (["compile", str(CNN), "-o", "x.weft"], "one of the arguments --board --config is required"),
])
def test_what_does_not_apply_is_refused(said, words, text):
    out, err = said(2, *words)
    assert text in err and err.startswith("weft: error: ") and "\n" not in err
    assert out == ""
