"""The micro engine: what small programs write to ports, computed by hand or in plain Python."""

import random

import pytest

from verif.amaranth_bench import simulate
from weft.hw.network_core.micro.engine import MicroEngine
from weft.network_core.microcode import Assembler, MicroProgram, Out, Strobe, Wait

MEMORY = {100: 0x12345678, 101: 0xFFFF0000, 102: 0, 103: 5 << 16, 104: 0x00ABCD00, 105: 0x00000101}
READY = {  # the port or the strobe that waits
    Wait.WRITE: (Out.WRITE_LOW, Out.WRITE_HIGH), Wait.OUTPUT: (Out.OUTPUT,),
    Wait.TILE: (Out.TILE, Out.X), Wait.LOAD: (Strobe.LOAD,), Wait.DRAIN: (Strobe.DRAIN,),
}
END = "\nend: OUT STATE; stop: J stop"


def run(text, *, idle=0.0, begin=0, seed=0):
    """What a program writes up to OUT STATE: (port or strobe, accumulator); and its cycles."""
    found = Assembler(text + END)
    registers = [found.constants.get(n, 0) for n in range(256)]
    dut = MicroEngine(MicroProgram(found.words, registers, found.labels))
    rng, written, addresses, cycles = random.Random(seed), [], [], []

    async def bench(ctx):
        ctx.set(dut.begin, begin)
        ctx.set(dut.window.base, 0x11)
        ctx.set(dut.window.limit, 0x22)
        ctx.set(dut.cycles, 0xC0FFEE)
        ctx.set(dut.halt, 1)
        await ctx.tick()
        ctx.set(dut.halt, 0)
        data, now = None, 0
        while Out.STATE not in [port for port, _ in written]:
            ready = sum((rng.random() >= idle) << wait for wait in Wait)
            ctx.set(dut.ready, ready)
            ctx.set(dut.read_ready, rng.random() >= idle)
            ctx.set(dut.data, 0xBAD0BAD0 if data is None else data)
            out, strobe, accumulator, read, can_read, address = (await ctx.tick().sample(
                dut.out, dut.strobe, dut.accumulator, dut.read, dut.read_ready, dut.address
            ))[2:]
            data = MEMORY[address] if read and can_read else None
            if data is not None:
                addresses.append(address)
            ports = [port for port in Out if out >> port & 1]
            strobes = [flag for flag in Strobe if strobe & flag]
            for wait, names in READY.items():
                if not ready >> wait & 1:
                    ports = [port for port in ports if port not in names]
                    strobes = [flag for flag in strobes if flag not in names]
            written.extend((which, accumulator) for which in (*ports, *strobes))
            now += 1
        cycles.append(now)

    simulate(dut, bench, limit=3000)
    return written[:-1], addresses, cycles[0]


IDLE = pytest.mark.parametrize("idle", [0, 0.6])


@IDLE
def test_arithmetic_and_conditions(idle):
    written, *_ = run("""
        LD =0xFFF0; ST x; ADD =0x20; OUT X
        J NC end; LD =0xFFF0; ADD =0x0F; OUT Y; J C end
        LD =5; SUB =5; OUT B; J NZ end; J NC end
        LD =5; SUB =6; OUT LINE; J Z end; J C end
        AND =0x0FF0; OUT JOB
        LD =3; INC x; OUT ORIGIN; LD =0; LD x; OUT ADDED; J end
        OUT JOB
    """, idle=idle)
    assert written == [
        (Out.X, 0x10), (Out.Y, 0xFFFF), (Out.B, 0), (Out.LINE, 0xFFFF), (Out.JOB, 0x0FF0),
        (Out.ORIGIN, 0xFFF3), (Out.ADDED, 0xFFF3),
    ]


@IDLE
def test_a_loop_stores_and_sums_its_counter(idle):
    written, *_ = run("""
        LD =5; ST count; LD =0; ST total
        next: LD count; OUT TILE; INC total; LD =-1; INC count; J NZ next
        LD total; OUT ORIGIN
    """, idle=idle)
    assert written == [*((Out.TILE, n) for n in range(5, 0, -1)), (Out.ORIGIN, 15)]


@IDLE
def test_reads_of_the_memory(idle):
    written, addresses, _ = run("""
        LD =100; OUT MEMORY
        GET LOW; OUT X; IN HIGH; OUT X; IN ADDRESS; OUT X; IN BASE; OUT X; IN LIMIT; OUT X
        GET HIGH; OUT Y; GET LOW; OUT Y
        DO ZEROS; GET ADDRESS; OUT Y; DO CYCLES; IN LOW; OUT B; IN HIGH; OUT B
    """, idle=idle)
    assert [value for port, value in written if port == Out.X] == [
        0x5678, 0x1234, 0x3456, 0x11, 0x22
    ]
    assert [value for port, value in written if port == Out.Y] == [0xFFFF, 0, 0xABCD]
    assert [value for port, value in written if port == Out.B] == [0xFFEE, 0xC0]
    assert addresses == [100, 101, 102, 103, 104]


def test_the_first_memory_data_are_the_ones_of_begin():
    written, *_ = run("IN LOW; OUT X; IN HIGH; OUT Y", begin=0xABCD1234)
    assert written == [(Out.X, 0x1234), (Out.Y, 0xABCD)]


def faults(text):
    """Whether a field is bad, and whether a bit is used, after a program."""
    names = {"ORIGIN": "bad", "LINE": "used"}
    written, *_ = run(f"""
        DO CLEAR
        LD =100; OUT MEMORY
        {text}
        J ISBAD bad; J used_too
        bad: OUT ORIGIN
        used_too: J ISUSED used; J end
        used: OUT LINE
    """)
    return {names[which.name] for which, _ in written if which.name in names}


@pytest.mark.parametrize("text, expected", [
    ("LD =0; BAD NZ; USED NZ", set()), ("LD =0; BAD Z", {"bad"}), ("LD =0; USED Z", {"used"}),
    ("LD =1; BAD NZ; USED NZ", {"bad", "used"}), ("LD =1; BAD NZ; USED NZ; DO CLEAR", set()),
    ("GET ADDRESS", {"bad"}), ("LD =104; OUT MEMORY; GET ADDRESS", set()),
    ("LD =105; OUT MEMORY; GET LOW; IN ADDRESS", set()),
    ("GET LOW; LD =104; OUT MEMORY; GET ADDRESS", set()),  # the vector before has a bank
    ("DO ZEROS", {"used"}), ("LD =102; OUT MEMORY; DO ZEROS", set()),
    ("LD =102; OUT MEMORY; DO ZEROS; DO ZEROS", {"used"}),
])
def test_faults_of_a_descriptor(text, expected):
    assert faults(text) == expected


@IDLE
def test_each_head_has_its_own_registers(idle):
    written, *_ = run("""
        DO LOADS; LD =1; ST head_a; LD =2; ST head_b; ST shared
        DO JOBS; LD =3; ST head_a; LD =4; ST head_b
        DO LOADS; DO CLEAR; LD head_a; OUT X; LD head_b; OUT X; LD shared; OUT X
        J LOADS loads; J end
        loads: DO JOBS; DO CLEAR; LD head_a; OUT Y; LD head_b; OUT Y; LD shared; OUT Y; J LOADS end
        OUT B
    """, idle=idle)
    assert [value for port, value in written if port == Out.X] == [1, 2, 2]
    assert [value for port, value in written if port == Out.Y] == [3, 4, 2]
    assert written[-1] == (Out.B, 2)  # the head of jobs has no loads


def test_waits_of_all_kinds_hold_the_engine():
    text = "LD =7; OUT WRITE_LOW; OUT WRITE_HIGH; OUT OUTPUT; OUT TILE; DO LOAD; DO DRAIN; LD =8"
    expected = [
        Out.WRITE_LOW, Out.WRITE_HIGH, Out.OUTPUT, Out.TILE, Strobe.LOAD, Strobe.DRAIN,
    ]
    fast, slow = run(text), run(text, idle=0.8, seed=3)
    assert fast[0] == slow[0] == [(which, 7) for which in expected]
    assert slow[2] > fast[2] + 10


def test_cycles_of_instructions():
    """An instruction a cycle behind two of the pipeline; a jump that is taken takes one more."""
    assert run("LD =1; LD =2; LD =3")[2] == 2 + 3 + 1
    assert run("LD =1; J Z end; LD =3")[2] == 2 + 3 + 1
    assert run("LD =0; J Z next; LD =3; next: LD =4")[2] == 2 + 4 + 1
    # A read asks, gets its vector, and has it in the third cycle.
    assert run("LD =100; OUT MEMORY; GET LOW; DO ZEROS")[2] == 2 + 2 + 3 + 3 + 1


def test_units_move_the_address_on():
    found = Assembler("LD =100; OUT MEMORY; stop: J stop")
    registers = [found.constants.get(n, 0) for n in range(256)]
    dut = MicroEngine(MicroProgram(found.words, registers, found.labels))

    async def bench(ctx):
        await ctx.tick().repeat(8)
        for move, expected in ((0, 100), (1, 101), (1, 102), (0, 102)):
            ctx.set(dut.next_address, move)
            await ctx.tick()
            assert ctx.get(dut.address) == expected

    simulate(dut, bench)


def test_a_halt_starts_the_program_again():
    found = Assembler("first: LD =1; OUT X; LD =2; OUT Y; J first")
    registers = [found.constants.get(n, 0) for n in range(256)]
    dut = MicroEngine(MicroProgram(found.words, registers, found.labels))

    async def bench(ctx):
        for cycles in range(1, 12):
            ctx.set(dut.halt, 1)
            await ctx.tick().repeat(cycles)
            ctx.set(dut.halt, 0)
            first = []
            for _ in range(cycles + 4):
                (out,) = (await ctx.tick().sample(dut.out))[2:]
                first.append(out)
            assert first[:4] == [0, 0, 0, 1 << Out.X]

    simulate(dut, bench)
