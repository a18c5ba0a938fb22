"""The bank reads the written words, and its blocks equal the behavioural model in every shape."""

import random

import pytest
from amaranth.back import rtlil

from verif.amaranth_bench import play
from verif.primitives import cosimulate
from weft.hw.buffers.bank import Bank
from weft.hw.fabrics import ecp5, gowin
from weft.hw.primitives import Primitives
from weft.sim.primitives import ECP5_MODELS, GOWIN_MODELS

SHAPES = [
    (8, 4), (36, 512), (50, 300), (128, 64), (18, 1024), (40, 1000), (20, 2048), (8, 4096),
    (3, 8192), (2, 16384),
]


@pytest.mark.parametrize("target", ["generic", "ice40up"])
def test_a_read_advances_only_while_enabled(target):
    fill = [{"write_en": 1, "write_addr": n, "write_data": 10 + n} for n in range(4)]
    read = [
        {"write_en": 0, "read_en": 1, "read_addr": 2},
        {"read_addr": 3}, {"read_en": 0}, {"read_en": 1}, {},
    ]
    (words,) = play(Bank(width=8, depth=4, target=target), [*fill, *read], "read_data", tail=1)
    assert words[6:] == [12, 12, 13, 13]


def test_no_address_comparison_is_requested():
    """Without the attribute Yosys adds logic for a read of a word that is written."""
    assert "attribute \\no_rw_check 1\n" in rtlil.convert(Bank(width=8, depth=4, target="generic"))


@pytest.mark.parametrize("target, lut_ram", [
    ("ecp5", True), ("gowin", True), ("ice40hx", False), ("generic", False),
])
def test_lut_ram_is_used_where_the_family_has_it(target, lut_ram):
    dut = Bank(width=8, depth=16, target=target, lut_ram=True)
    text = rtlil.convert(dut, platform=Primitives())
    assert "DP16KD" not in text and "SDPX9B" not in text
    assert ('attribute \\ram_style "distributed"' in text) == lut_ram


@pytest.mark.parametrize("target", ["generic", "ecp5", "ice40hx"])
@pytest.mark.parametrize("width, depth", [(1, 1), (32, 8), (70, 512)])
def test_words_come_after_the_latency(width, depth, target):
    rng = random.Random(width)
    dut = Bank(width=width, depth=depth, target=target)
    memory, expected, script = {}, {}, []
    previous = None  # read address of the cycle before
    for now in range(200 + 4 * depth):
        write_addr, read_addr = rng.randrange(depth), rng.randrange(depth)
        write, data = rng.randrange(2), rng.getrandbits(width)
        script.append({
            "write_en": write, "write_addr": write_addr, "write_data": data,
            "read_addr": read_addr,
        })
        if write and write_addr == previous:  # written before it is read out: undefined
            expected.pop(now - 1 + Bank.LATENCY, None)
        if read_addr in memory and not (write and write_addr == read_addr):
            expected[now + Bank.LATENCY] = memory[read_addr]
        previous = read_addr
        if write:
            memory[write_addr] = data
    (found,) = play(dut, script, "read_data", tail=Bank.LATENCY)
    assert len(expected) > 40
    assert {now: found[now] for now in expected} == expected


@pytest.mark.parametrize("width, depth", [
    *SHAPES[:2], *(
        pytest.param(*shape, marks=pytest.mark.slow if number % 2 else pytest.mark.long)
        for number, shape in enumerate(SHAPES[2:], 3)
    ),
])
def test_blocks_equal_the_behavioural_model(width, depth):
    dut = Bank(width=width, depth=depth, target="ecp5")
    assert cosimulate(dut, cycles=2 * depth + 2000) == "PASS"


@pytest.mark.parametrize("width, depth", [
    (50, 300), *(
        pytest.param(*shape, marks=pytest.mark.long if number % 2 else pytest.mark.slow)
        for number, shape in enumerate(SHAPES) if shape != (50, 300)
    ),
])
def test_blocks_of_gowin_equal_the_behavioural_model(width, depth):
    dut = Bank(width=width, depth=depth, target="gowin")
    models = GOWIN_MODELS.read_text(encoding="utf-8")
    assert cosimulate(dut, cycles=2 * depth + 2000, models=models) == "PASS"


@pytest.mark.slow
@pytest.mark.parametrize("line, broken", [
    ("if (OCE) output_reg", "output_reg"), ("if (CEB) read_reg", "read_reg"),
    ("posedge CLKA) if (CEA) for", "posedge CLKA) for"), ("ADA[n / BYTE]", "ADA[n / BYTE + 1]"),
    ("output_reg : read_reg", "read_reg : read_reg"), ("memory[ADB / BITS]", "memory[ADB]"),
])
def test_wrong_block_models_of_gowin_are_detected(line, broken):
    models = GOWIN_MODELS.read_text(encoding="utf-8")
    assert models.count(line) == 1
    dut = Bank(width=40, depth=30, target="gowin")
    assert cosimulate(dut, cycles=2000, models=models.replace(line, broken)).startswith("FAIL")


def test_a_wrong_number_of_address_pins_of_gowin_is_detected(monkeypatch):
    monkeypatch.setattr(gowin, "ADDRESS_BITS", 13)
    models = GOWIN_MODELS.read_text(encoding="utf-8")
    dut = Bank(width=20, depth=600, target="gowin")
    assert cosimulate(dut, cycles=3000, models=models).startswith("FAIL")


@pytest.mark.parametrize("width, parts, bytewise", [
    (64, 2, True), (32, 16, False), (24, 1, True), *(
        pytest.param(*shape, marks=pytest.mark.slow) for shape in (
            (128, 2, False), (32, 4, True), (64, 32, False),
        )
    ), *(pytest.param(*shape, marks=pytest.mark.long) for shape in (
        (128, 1, True), (128, 8, False), (96, 4, True),
    )),
])
def test_parts_and_bytes_equal_the_behavioural_model(width, parts, bytewise):
    dut = Bank(width=width, depth=16, target="ecp5", parts=parts, bytewise=bytewise)
    assert cosimulate(dut, cycles=2_000) == "PASS"


@pytest.mark.parametrize("width, parts, bytewise, depth", [
    (32, 4, True, 16), pytest.param(64, 32, False, 16, marks=pytest.mark.slow),
    pytest.param(24, 1, True, 3000, marks=pytest.mark.slow),
])
def test_parts_and_bytes_of_gowin_equal_the_behavioural_model(width, parts, bytewise, depth):
    dut = Bank(width=width, depth=depth, target="gowin", parts=parts, bytewise=bytewise)
    models = GOWIN_MODELS.read_text(encoding="utf-8")
    assert cosimulate(dut, cycles=2 * depth + 2_000, models=models) == "PASS"


@pytest.mark.parametrize("target", ["generic", "ice40up"])
def test_a_part_of_a_word_is_read(target):
    dut = Bank(width=32, depth=4, target=target, parts=4, bytewise=True)
    fill = [
        {"write_en": 0b1111, "write_addr": n, "write_data": 0x04030201 + 0x10101010 * n}
        for n in range(4)
    ]
    fill.append({"write_en": 0b0100, "write_addr": 2, "write_data": 0xFFFFFFFF})
    read = [{"write_en": 0, "read_addr": 4 * 2 + n} for n in range(4)]
    (words,) = play(dut, [*fill, *read], "read_data", tail=2)
    assert words[-4:] == [0x21, 0x22, 0xFF, 0x24]


@pytest.mark.slow
@pytest.mark.parametrize("line, broken", [
    ("if (OCEB) output_reg", "output_reg"), ("if (CEB) for", "for"), ("CEA && WEA", "CEA"),
    ("read_data[35:18] : lower", "lower : lower"),
    ("|| write_addr[n / 9]", "|| write_addr[n / 9 + 1]"),
    ("output_reg : read_reg", "read_reg : read_reg"),
])
def test_wrong_block_models_are_detected(line, broken):
    models = ECP5_MODELS.read_text(encoding="utf-8")
    assert models.count(line) == 1
    dut = Bank(width=40, depth=30, target="ecp5")
    assert cosimulate(dut, cycles=2000, models=models.replace(line, broken)).startswith("FAIL")


def test_a_wrong_number_of_address_bits_is_detected(monkeypatch):
    monkeypatch.setattr(ecp5, "ADDRESS_BITS", 13)
    assert cosimulate(Bank(width=20, depth=600, target="ecp5"), cycles=3000).startswith("FAIL")


@pytest.mark.parametrize("depth, registered", [(512, True), (1024, False), (4096, False)])
def test_only_blocks_of_36_bits_of_gowin_use_their_output_registers(depth, registered):
    text = rtlil.convert(Bank(width=36, depth=depth, target="gowin"), platform=Primitives())
    assert (f"parameter \\READ_MODE 1'{int(registered)}\n") in text
    assert (f"parameter \\READ_MODE 1'{int(not registered)}\n") not in text
