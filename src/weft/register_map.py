"""The register space of an IP core: one description for hardware, drivers and documents.

The space has 4 KiB of 32-bit words. The first 1 KiB holds the core's own register block
(`weft.registers`). The control registers follow, then the FIFO ports of a bus without streams.
An access is an **error** if its address is not in the map or no multiple of 4, if it writes less
than a word, if it writes a read-only register, or if it reads a write-only register. The bus
answers it with its error response, it has no effect, and IRQ_STATUS records it.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from weft.design import PerKind
from weft.ip import Ip
from weft.network_core import register_map as network
from weft.network_core.ip import NetworkIp
from weft.registers import (
    COUNTERS,
    FIELDS,
    IDENTITY,
    REGISTERS,
    Field,
    FifoPort,
    Register,
    describe,
    word_register,
)

__all__ = ["constants", "fifo_ports", "interrupts", "registers"]

DESCRIPTOR_WORDS = 16


def constants(ip: Ip | NetworkIp) -> dict[str, int]:
    """The values of the registers that describe the core, by name."""
    return _MAPS.of(ip).constants(ip)


def interrupts(ip: Ip | NetworkIp) -> tuple[Field, ...]:
    """The bits of IRQ_STATUS; IRQ_ENABLE has the same bits."""
    return _MAPS.of(ip).interrupts(ip)


def registers(ip: Ip | NetworkIp) -> tuple[Register, ...]:
    """All registers of ``ip``, in the order of their addresses."""
    return _MAPS.of(ip).registers(ip)


def fifo_ports(ip: Ip | NetworkIp) -> tuple[FifoPort, ...]:
    """The FIFO ports of ``ip``."""
    return _MAPS.of(ip).fifo_ports(ip)


def _constants(ip):
    return dict(zip(REGISTERS, describe(ip.array), strict=False))


def _interrupts(ip):
    every_bit = (
        ("done", True, "a job ended and all its results left the core"),
        ("failed", True, "a job ended with a status other than 0"),
        ("access_error", True, "the bus answered an access with an error"),
        ("overflow", not ip.has_streams, "a write found no space and was dropped"),
        ("underflow", ip.has_fifo_ports, "RESULT_FIFO was read while it was empty"),
        ("dma_read_error", ip.has_dma, "a memory read was answered with an error"),
        ("dma_write_error", ip.has_dma, "a memory write was answered with an error"),
        ("bad_descriptor", ip.has_dma, "a descriptor was invalid and was dropped"),
        ("bad_address", ip.has_dma,
         "a descriptor would have left the address space or the window and was dropped"),
    )
    return tuple(
        Field(name, bit, 1, "w1c", text)
        for bit, (name, present, text) in enumerate(every_bit) if present
    )


def _registers(ip):
    texts = {
        **IDENTITY,
        **{name: f"Config field: {text}" for name, text in FIELDS.items()},
        **COUNTERS,
    }
    core = [word_register(name, 4 * n, "ro", texts[name]) for n, name in enumerate(REGISTERS)]
    fifo = _fifo_registers() if ip.has_fifo_ports else []
    return (*core, *_control_registers(ip), *fifo, *_dma_registers(ip))


def _control_registers(ip):
    irqs = _interrupts(ip)
    status = [
        Field("busy", 0, 1, "ro", "the core has a job or a command in progress"),
        Field("reset_busy", 1, 1, "ro", "a soft reset is in progress"),
    ]
    if ip.has_dma:
        status.append(Field("dma_busy", 2, 1, "ro", "a descriptor or a result is in progress"))
    kept = "IRQ_ENABLE, DMA_BASE and DMA_LIMIT" if ip.window else "IRQ_ENABLE"
    errors = ", 4 read error, 8 write error" if ip.has_dma else ""
    return [
        Register("control", 0x400, "wo", "starts a soft reset or an abort", (
            Field("reset", 0, 1, "pulse", f"soft reset: clears everything except {kept}"),
            Field("abort", 1, 1, "pulse", "aborts the running job"),
        )),
        Register("status", 0x404, "ro", "activity of the core and its wrapper", tuple(status)),
        Register("irq_status", 0x408, "rw", "events that happened; write 1 to clear", irqs),
        Register("irq_enable", 0x40C, "rw", "events that raise irq", tuple(
            dataclasses.replace(f, access="rw") for f in irqs
        )),
        word_register(
            "jobs_done", 0x410, "ro", "number of jobs that ended and whose results are out"
        ),
        Register("last_job", 0x414, "ro", "the job that ended last", (
            Field("tag", 0, 16, "ro", "tag of the job"),
            Field("status", 16, 8, "ro", f"0 success, 1 aborted, 2 rejected{errors}"),
        )),
    ]


def _fifo_registers():
    return [
        word_register("cmd_fifo_free", 0x418, "ro", "number of words that CMD_FIFO has space for"),
        Register("result_level", 0x41C, "ro", "contents of RESULT_FIFO", (
            Field("words", 0, 16, "ro", "number of words in the FIFO, all of one job"),
            Field("complete", 16, 1, "ro", "the FIFO holds the last word of the job"),
            Field("status", 24, 8, "ro", "status of the job; valid when complete is 1"),
        )),
        Register("result_tag", 0x420, "ro", "tag of the job whose results are in the FIFO", (
            Field("tag", 0, 16, "ro", "tag of the job; valid when result_level.complete is 1"),
        )),
    ]


def _dma_registers(ip):
    found = []
    if ip.has_dma:
        found += [
            *(
                word_register(
                    f"descriptor_{n}", 0x440 + 4 * n, "rw", f"word {n} of the next descriptor"
                )
                for n in range(DESCRIPTOR_WORDS)
            ),
            Register("doorbell", 0x480, "wo", "submits the descriptor in DESCRIPTOR_0..15", (
                Field("submit", 0, 1, "pulse", "queues the descriptor"),
            )),
            word_register(
                "desc_free", 0x484, "ro", "number of descriptors that the queue has space for"
            ),
        ]
    if ip.window:
        beat = ip.array.bytes_in
        found += [
            word_register("dma_base", 0x488, "rw",
                          f"first address of the window, a multiple of {beat} bytes"),
            word_register("dma_limit", 0x48C, "rw",
                          f"last address of the window, rounded up to the end of its {beat} bytes",
                          reset=0xFFFFFFFF),
        ]
    return found


def _fifo_ports(ip):
    if not ip.has_fifo_ports:
        return ()
    return (
        FifoPort("cmd_fifo", 0x800, 0x400, "wo", "appends a word to the command stream"),
        FifoPort("result_fifo", 0xC00, 0x400, "ro", "removes the next word of the results"),
    )


class _Map(NamedTuple):
    """The functions of an IP core that make the parts of its map."""

    constants: Callable[[Any], dict[str, int]]
    interrupts: Callable[[Any], tuple[Field, ...]]
    registers: Callable[[Any], tuple[Register, ...]]
    fifo_ports: Callable[[Any], tuple[FifoPort, ...]]


_MAPS = PerKind(
    product=_Map(_constants, _interrupts, _registers, _fifo_ports),
    network=_Map(
        lambda ip: network.constants(ip.config), lambda ip: network.network_interrupts(),
        lambda ip: network.network_registers(program=bool(ip.config.program_words)),
        lambda ip: network.network_fifo_ports(),
    ),
)
