"""Tests of the golden transport, header by header, against ``docs/interfaces.md``."""

import sys
from types import SimpleNamespace

import pytest
from golden_commands import CONFIG, FEED, job, load, numbers, product, result
from golden_stream import GoldenStream
from rejects import rejects

from weft.commands import Job, JobFlag, Load, LoadFlag, Status
from weft.config import Config
from weft.host.transport import Packet, TransportClosed, TransportError, TransportTimeout
from weft.registers import REGISTERS, decode


@pytest.fixture(autouse=True)
def predicted(monkeypatch):
    """The commands passed to the cycle model, which returns 10 cycles per command."""
    asked = []

    def predict(config, commands):
        assert config == CONFIG
        asked.append(commands)
        return SimpleNamespace(cycles=10 * len(commands), active=3, starved=2, stalled=1)

    monkeypatch.setitem(sys.modules, "weft.cycles", SimpleNamespace(predict=predict))
    return asked


@pytest.fixture
def transport():
    return GoldenStream(CONFIG)


def test_rejects_anything_but_a_config():
    with rejects(TypeError, "config must be a weft.Config, not None"):
        GoldenStream(None)


def test_multiplies_to_the_byte():
    config = Config(rows=1, cols=3, a_words=32, b_words=32, bytes_in=4, bytes_out=8)
    transport = GoldenStream(config)
    commands = (
        bytes.fromhex("01 02 3412 0300 0100 02000000 0300")
        + bytes.fromhex("0000 0100 0100 0000 0100 0100 0000 0000 0000")
        + bytes.fromhex("02 02 00 01 0000 0100 01000000 02000000 01000000") + bytes(12)
        + bytes([2, 255, 0, 0])  # two words share one of the stream: A = [2, -1]
        + bytes.fromhex("02 02 01 01 0000 0100 01000000 02000000 01000000") + bytes(12)
        + bytes([1, 2, 3, 0, 4, 5, 128, 0])  # B = [1 2 3; 4 5 -128]
    )
    transport.send_words(commands)
    values = [-2, -1, 134]
    data = b"".join(v.to_bytes(4, "little", signed=True) for v in values) + bytes(4)
    assert transport.receive(0) == Packet(0x1234, True, Status(0), data)


def test_waits_for_every_byte(transport):
    a, b = numbers(3, 5), numbers(5, 4, seed=1)
    commands = job(3, 4, 5, 7) + load(0, a) + load(1, b.T)
    for at in range(0, len(commands), 8):
        with pytest.raises(TransportTimeout) as error:
            transport.receive(2.5)
        transport.send_words(commands[at : at + 8])
    assert str(error.value) == "no results within 2.5 s"
    assert result(transport, 3, 4, 7) == product(a, b)


def test_keeps_loaded_operands(transport):
    a, b, c = numbers(3, 5), numbers(5, 4, seed=1), numbers(2, 5, seed=2)
    transport.send_words(load(1, b.T, page=1, flags=LoadFlag(0)))
    for tag, x in enumerate((a, c, a)):
        transport.send_words(job(len(x), 4, 5, tag, JobFlag.FEED_A, b_page=1) + load(0, x))
        assert result(transport, len(x), 4, tag) == product(x, b)
    transport.send_words(job(3, 4, 5, 9, JobFlag(0), b_page=1))
    assert result(transport, 3, 4, 9) == product(a, b)


def test_hands_on_sums(transport):
    a, b = numbers(2, 12), numbers(12, 3, seed=1)
    kinds = [JobFlag.KEEP, JobFlag.KEEP | JobFlag.ACCUMULATE, JobFlag.ACCUMULATE]
    for tag, kind in enumerate(kinds):
        k = slice(4 * tag, 4 * tag + 4)
        transport.send_words(job(2, 3, 4, tag, FEED | kind) + load(0, a[:, k]) + load(1, b[k].T))
    assert result(transport, 2, 3, 2) == product(a, b)
    transport.send_words(job(2, 3, 4, 3, JobFlag(0)))
    assert result(transport, 2, 3, 3) == product(a[:, 8:], b[8:])


@pytest.mark.parametrize(
    "header",
    [
        job(0, 1, 1, 5), job(1, 0, 1, 5), job(1, 1, 0, 5), job(9, 1, 1, 5), job(1, 13, 1, 5),
        job(1, 1, 129, 5), job(1, 1, 1, 5, JobFlag(64)), job(1, 1, 1, 5, JobFlag(0x8000)),
        job(3, 3, 2, 5, JobFlag.KEEP), job(1, 4, 2, 5, JobFlag.ACCUMULATE),
    ],
)
def test_rejects_unsupported_jobs(transport, header):
    a, b = numbers(2, 2), numbers(2, 2, seed=1)
    transport.send_words(header + job(2, 2, 2, 6) + load(0, a) + load(1, b.T))
    packet = transport.receive(0)
    assert (packet.tag, packet.last, packet.status) == (5, True, Status.REJECTED)
    assert len(packet.data) == 8
    assert result(transport, 2, 2, 6) == product(a, b)


def test_counts_invalid_headers(transport):
    transport.send_words(b"".join(
        start.ljust(32, b"\0") for start in (b"", b"\3\2", b"\1\1", b"\2\0")
    ))
    loads = [(4, 0, 1, 1, 1), (0, 0, 1, 0, 1), (0, 0, 1, 1, 0), (0, 0, 1, 5, 1), (0, 0, 1, 1, 257)]
    transport.send_words(b"".join(Load(*load).pack() for load in loads))
    assert transport.read(REGISTERS.index("errors"), 1, 1) == [9]


def test_abort_ends_the_oldest_waiting_job(transport):
    a, b = numbers(2, 2), numbers(2, 2, seed=1)
    transport.send_words(job(2, 2, 2, 1) + job(2, 2, 2, 2, a_page=1, b_page=1))
    transport.send_words(load(0, a, page=1) + load(1, b.T, page=1))
    with pytest.raises(TransportTimeout):
        transport.receive(0)
    transport.abort(1)
    packet = transport.receive(0)
    assert (packet.tag, packet.last, packet.status) == (1, True, Status.ABORTED)
    assert result(transport, 2, 2, 2) == product(a, b)
    transport.abort(1)
    with pytest.raises(TransportTimeout):
        transport.receive(0)


def test_load_waits_for_a_job_that_uses_its_pages(transport):
    a, b, other = numbers(2, 2), numbers(2, 2, seed=1), numbers(2, 2, seed=2)
    transport.send_words(load(0, a, flags=LoadFlag(0)) + job(2, 2, 2, 1, JobFlag.FEED_B))
    transport.send_words(load(0, other, flags=LoadFlag(0)) + load(1, b.T))
    with pytest.raises(TransportTimeout):  # the load of A delays the load that feeds the job
        transport.receive(0)
    transport.abort(1)
    assert transport.receive(0).status == Status.ABORTED
    transport.send_words(job(2, 2, 2, 2, JobFlag(0)))
    assert result(transport, 2, 2, 2) == product(other, b)


def test_a_load_does_not_wait_for_a_rejected_job(transport):
    transport.send_words(job(2, 2, 2, 1) + job(0, 1, 1, 2, FEED, a_page=1, a_pages=1))
    transport.send_words(load(0, numbers(2, 2), page=1, flags=LoadFlag(0)) + bytes(32))
    assert transport.read(REGISTERS.index("errors"), 1, 1) == [1]
    with pytest.raises(TransportTimeout):
        transport.receive(0)
    transport.abort(1)
    answers = [transport.receive(0) for _ in range(2)]
    assert [(p.tag, p.status) for p in answers] == [(1, Status.ABORTED), (2, Status.REJECTED)]


def test_holds_at_most_jobs_jobs(transport):
    a, b = numbers(2, 2), numbers(2, 2, seed=1)
    transport.send_words(b"".join(job(2, 2, 2, tag) for tag in range(2)))
    transport.send_words(job(2, 2, 2, 2, a_page=1, b_page=1) + bytes(32))
    transport.send_words(load(0, a, page=1) + load(1, b.T, page=1))
    for tag in range(2):
        # the invalid header stands behind the third job
        assert transport.read(REGISTERS.index("errors"), 1, 1) == [tag]
        transport.abort(1)
        assert transport.receive(0).tag == tag
    assert result(transport, 2, 2, 2) == product(a, b)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (Load(0, 2, 1, 3, 16).pack() + bytes(192),
         "a load must lie within 4 pages, not 3 panels of 16 words every 1 pages from page 2"),
        (Load(0, 0, 1, 1, 17).pack() + bytes(72),
         "a load must lie within 4 pages, not 1 panels of 17 words every 1 pages from page 0"),
        (Load(2, 4, 1, 1, 1).pack() + bytes(64),
         "a load must lie within 4 pages, not 1 panels of 1 words every 1 pages from page 4"),
        (job(2, 2, 2, 0, JobFlag(0), a_page=4), "a job's operand must lie within 64 words, not 65"),
    ],
)
def test_rejects_commands_with_undefined_effect(transport, command, text):
    with rejects(TransportError, text):
        transport.send_words(command)


def test_describes_itself_and_counts(transport, predicted):
    assert decode(transport.read(0, REGISTERS.index("busy"), 1)) == CONFIG
    a, b = numbers(2, 2), numbers(2, 2, seed=1)
    for _ in range(2):
        transport.send_words(job(2, 2, 2, 1) + load(0, a) + load(1, b.T))
    counters = dict(zip(REGISTERS, transport.read(0, len(REGISTERS), 1), strict=True))
    # three headers of 4 words; A in 1 word, B of 6 bytes in 1; 2 chunks of 4 results
    assert (counters["words_in"], counters["words_out"], counters["finished"]) == (28, 8, 2)
    assert (counters["busy"], counters["active"]) == (60, 6)
    assert (counters["starved"], counters["stalled"]) == (4, 2)
    assert [[type(c) for c in commands] for commands in predicted] == [[Job, Load, Load]]
    transport.read(0, len(REGISTERS), 1)
    assert len(predicted) == 1


def test_runs_the_cycle_model_only_when_counters_are_read(transport, predicted):
    for tag in range(100):
        transport.send_words(load(0, numbers(2, 2), page=tag % 3, flags=LoadFlag(0)))
        transport.send_words(job(2, 2, 2, tag, FEED))
        transport.send_words(load(0, numbers(2, 2)) + load(1, numbers(2, 2)))
        transport.receive(0)
        transport.read(0, REGISTERS.index("busy"), 1)
        transport.read(REGISTERS.index("words_in"), 1, 1)
    assert predicted == []
    busy, active = transport.read(REGISTERS.index("busy"), 2, 1)
    # Equal batches count each time, but are predicted once. The tags of their jobs may differ.
    assert (busy, active) == (10 * 100 + 30 * 100, 3 * 200)
    assert sorted(len(commands) for commands in predicted) == [1, 1, 1, 3]
    assert sorted(c.page for commands in predicted for c in commands[:1] if type(c) is Load) == [
        0, 1, 2
    ]


def test_limits_the_stored_commands(transport, predicted, monkeypatch):
    monkeypatch.setattr("weft.host.emulated._MAX_UNCOUNTED", 5)
    for page in (0, 1, 2, 1, 3, 0, 2):
        transport.send_words(load(0, numbers(2, 2), page=page, flags=LoadFlag(0)))
    assert predicted == []
    for tag, m in enumerate((1, 2)):
        transport.send_words(job(m, 2, 2, tag) + load(0, numbers(m, 2)) + load(1, numbers(2, 2)))
    assert sorted(len(commands) for commands in predicted) == [1, 1, 1, 1, 3]
    assert transport.read(REGISTERS.index("busy"), 1, 1) == [10 * 7 + 30 * 2]


def test_rejects_registers_out_of_range(transport):
    last = len(REGISTERS) - 1
    with rejects(TransportError, f"registers read must lie in 0..{last}, not {last}..{last + 1}"):
        transport.read(len(REGISTERS) - 1, 2, 1)


def test_rejects_use_after_close(transport):
    transport.close()
    transport.close()
    for call in (
        lambda: transport.send_words(b""), lambda: transport.receive(1),
        lambda: transport.read(0, 1, 1), lambda: transport.abort(1),
    ):
        with rejects(TransportClosed, "the transport is closed"):
            call()
