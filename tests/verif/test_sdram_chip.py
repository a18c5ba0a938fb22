"""The model of an SDRAM chip refuses each violation of a rule, and nothing else."""

from dataclasses import replace

import pytest

from verif.sdram_chip import (
    ACTIVATE,
    BURST_STOP,
    MODE,
    NOP,
    PRECHARGE,
    READ,
    REFRESH,
    WRITE,
    ChipError,
    SdramChipModel,
)
from weft.sdram import SDRAM_CHIPS

# 10 ns a cycle: tRCD 2 cycles, tRP 2, tRAS 5, tRC 7, tRRD 2, tRFC 7, tWR 2.
CHIP = replace(
    SDRAM_CHIPS["IS42S16160G-7"], power_up=50, refreshes=8, retention=2000, ras_max=1000
)
ALL = 1 << 10
LENGTH_4, CAS_2 = 2, 2 << 4
REFRESHES = [(REFRESH,), 6] * 8
SET_UP = [5, (PRECHARGE, 0, ALL), 1, *REFRESHES, (MODE, 0, CAS_2 | LENGTH_4), 1]
OPEN = [*SET_UP, (ACTIVATE, 1, 7), 1]


def play(script, *, chip=CHIP, data=(), dqm=0, **options):
    """Run commands, each ``(command, ba, a)`` or a number of cycles without one.

    ``data`` has the words that the controller drives, by the cycle counted from the last command.
    Returns the words of the cycles from there on.
    """
    model = SdramChipModel(chip, mhz=100, **options)
    steps = [one for step in script for one in ([(NOP,)] * step if type(step) is int else [step])]
    last = max((n for n, step in enumerate(steps) if step[0] != NOP), default=0)
    found = []
    for n, step in enumerate(steps):
        command, ba, a = (*step, 0, 0)[:3]
        at, masks = n - last, dqm if type(dqm) is dict else {}
        mask = 3 if n < 5 else masks.get(at, dqm if type(dqm) is int else 0)
        word = model.clock(command, ba=ba, a=a, dqm=mask, dq=dict(data).get(at))
        if at >= 0:
            found.append(word)
    return model, found


WORDS = {n: 0x1234 + n for n in range(4)}
WRITTEN = [*OPEN, (WRITE, 1, 8)]


def test_writes_and_reads():
    model, _ = play([*WRITTEN, 3], data=WORDS)
    assert model.words == {(1, 7, 8 + n): (0x1234 + n, 0xFFFF) for n in range(4)}
    # Words are at the pins from two cycles after the READ on: the cycle that the model returns is
    # the next one.
    for _ in range(4):
        model.clock(NOP)
    found = [model.clock(READ, ba=1, a=8), *(model.clock(NOP) for _ in range(6))]
    assert found == [None, *WORDS.values(), None, None]
    assert model.commands["READ"] == 1 and model.commands["REFRESH"] == 8


def test_masks_keep_bytes():
    model, _ = play([*WRITTEN, 3], data=WORDS, dqm={0: 1, 1: 2, 2: 3})
    assert [model.words[1, 7, 8 + n] for n in range(4)] == [
        (0x1200, 0xFF00), (0x35, 0x00FF), (0, 0), (0x1237, 0xFFFF),
    ]


def test_contents_of_words_that_were_not_written():
    _, found = play([*OPEN, (READ, 1, 4), 5], contents=lambda *place: sum(place))
    assert found == [None, 12, 13, 14, 15, None]


@pytest.mark.parametrize("script, text", [
    ([4, (PRECHARGE, 0, ALL)], "PRECHARGE must be 50 ns after power-up, not 40"),
    ([5, (REFRESH,)], "REFRESH must follow a PRECHARGE of all banks"),
    ([5, (PRECHARGE, 0, 0), 2, (REFRESH,)], "REFRESH must follow a PRECHARGE of all banks"),
    ([5, (PRECHARGE, 0, ALL), 2, *REFRESHES[:-2], (MODE, 0, 0x22)],
     "LOAD MODE REGISTER must follow 8 refreshes, not 7"),
    ([5, (PRECHARGE, 0, ALL), 2, (ACTIVATE,)], "ACTIVATE must follow LOAD MODE REGISTER"),
    ([*SET_UP[:-2], (MODE, 0, 0x2A)],
     "the mode 0x2a of bank 0 must be sequential bursts of 1 to 8 words"),
    ([*SET_UP[:-1], (ACTIVATE, 0, 0)], "ACTIVATE must be 10 ns later (tRFC, tMRD)"),
    ([*SET_UP, (REFRESH,), 5, (ACTIVATE, 0, 0)], "ACTIVATE must be 10 ns later (tRFC, tMRD)"),
    ([*SET_UP, (READ, 0, 0)], "READ of bank 0 without an open row"),
    ([*SET_UP, (ACTIVATE, 0, 8192)], "ACTIVATE of row 8192 of 8192"),
    ([*OPEN[:-1], (READ, 1, 0)],
     "READ must be 20 ns after ACTIVATE of the bank (tRCD), not 10"),
    ([*OPEN, (ACTIVATE, 1, 8)], "ACTIVATE of a bank whose row 7 is open"),
    ([*OPEN[:-1], (ACTIVATE, 2, 8)],
     "ACTIVATE must be 15 ns after the last ACTIVATE (tRRD), not 10"),
    ([*OPEN, (MODE, 0, 0x22)], "LOAD MODE REGISTER while a row is open"),
    ([*OPEN, (REFRESH,)], "REFRESH while row 7 is open"),
    ([*OPEN, (READ, 1, ALL)], "READ of column 0x400, which is no multiple of 4"),
    ([*OPEN, (READ, 1, 2)], "READ of column 0x2, which is no multiple of 4"),
    ([*OPEN, (BURST_STOP,)], "BURST STOP must not come"),
    ([*OPEN, 2, (PRECHARGE, 1, 0)],
     "PRECHARGE must be 45 ns after ACTIVATE of the bank (tRAS), not 40"),
    ([*OPEN, 3, (PRECHARGE, 1, 0), (REFRESH,)],
     "REFRESH must be 20 ns after PRECHARGE (tRP), not 10"),
    ([*OPEN, 3, (PRECHARGE, 1, 0), (ACTIVATE, 1, 0)],
     "ACTIVATE must be 20 ns after PRECHARGE of the bank (tRP), not 10"),
    ([*OPEN, (READ, 1, 0), 5], "bank 1, row 7, column 0 is read, and was not written"),
    ([*OPEN, 100], "row 7 must not be open for over 1000 ns"),
    ([*SET_UP, 150], "a row was not refreshed within 2000 ns"),
    ([*OPEN, (WRITE, 1, 0)], "nothing drives a word that is written"),
])
def test_refuses(script, text):
    with pytest.raises(ChipError) as error:
        play(script)
    assert str(error.value).partition(": ")[2] == text


@pytest.mark.parametrize("cycles", [2, 3])
@pytest.mark.parametrize("command, text", [
    (READ, "READ must not cut the access before it"), (PRECHARGE, "PRECHARGE must not cut a READ"),
])
def test_refuses_to_cut_a_read(command, text, cycles):
    """4 words: the next command is allowed 4 cycles later."""
    script = [*OPEN, 2, (READ, 1, 0), cycles, (command, 1, 4 * (command == READ))]
    if cycles == 3:
        play(script, contents=lambda *place: 0)
    else:
        with pytest.raises(ChipError, match=text):
            play(script, contents=lambda *place: 0)


def test_refuses_a_short_row_cycle():
    """tRC is longer than tRAS and tRP of this chip together."""
    chip = replace(CHIP, rc=90)
    with pytest.raises(ChipError, match=r"ACTIVATE must be 90 ns after .* \(tRC\), not 70"):
        play([*OPEN, 3, (PRECHARGE, 1, 0), 1, (ACTIVATE, 1, 0)], chip=chip)


def test_refuses_a_short_write_recovery():
    model, _ = play([*OPEN, 2, (WRITE, 1, 8), 3], data=WORDS)
    model.clock(NOP)
    model.clock(PRECHARGE, ba=1)  # two cycles after the last word
    model, _ = play([*OPEN, 2, (WRITE, 1, 8), 3], data=WORDS)
    with pytest.raises(ChipError, match=r"20 ns after the last word \(tWR\), not 10"):
        model.clock(PRECHARGE, ba=1)


@pytest.mark.parametrize("cycle, refused", [
    (1, False), (2, True), (5, True), (6, True), (7, False),
])
def test_refuses_two_drivers(cycle, refused):
    """Words are at the pins in cycles 2 to 5 from the READ on; in cycle 6 the chip lets go."""
    def run():
        play([*OPEN, (READ, 1, 0), 8], data={cycle: 1}, contents=lambda *place: 0)

    if refused:
        with pytest.raises(ChipError, match="two drivers of the data pins"):
            run()
    else:
        run()


@pytest.mark.parametrize("cycle, refused", [(-1, False), (0, True), (3, True), (4, False)])
def test_refuses_a_mask_of_a_read(cycle, refused):
    def run():
        play([*OPEN, (READ, 1, 0), 8], dqm={cycle: 1}, contents=lambda *place: 0)

    if refused:
        with pytest.raises(ChipError, match="DQM masks a word that is read"):
            run()
    else:
        run()


def test_refuses_a_mask_that_is_low_at_power_up():
    model = SdramChipModel(CHIP, mhz=100)
    model.clock(NOP, dqm=0)  # before the first edge, registers have no value
    with pytest.raises(ChipError, match="DQM must be high during power-up"):
        model.clock(NOP, dqm=1)


def test_refuses_a_latency_that_is_too_short():
    model = SdramChipModel(CHIP, mhz=110)
    with pytest.raises(ChipError, match="with CAS latency 2 must be at least 10 ns, not 9.09"):
        for step in [6, (PRECHARGE, 0, ALL), 2, *[(REFRESH,), 7] * 8, (MODE, 0, CAS_2)]:
            for command, *rest in [(NOP,)] * step if type(step) is int else [step]:
                model.clock(command, a=(0, *rest)[-1], dqm=3)


def test_takes_pins_without_a_clock_enable_for_an_error():
    model = SdramChipModel(CHIP, mhz=100)
    idle = dict(cs_n=0, ras=1, cas=1, we=1, ba=0, a=0, dqm=3, dq=0, driven=0)
    assert model.edge(1, *idle.values()) == 0
    assert model.edge(1, *(idle | {"cs_n": 1, "we": 0}).values()) == 0  # not selected: no command
    assert model.commands["NOP"] == 2
    with pytest.raises(ChipError, match="CKE must be high"):
        model.edge(0, *idle.values())
