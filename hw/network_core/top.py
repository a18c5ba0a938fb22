"""The top of a network core, with flat ports for simulators."""

from amaranth.hdl import Value
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.core import NetworkCore
from weft.hw.network_core.micro.core import MicroCore
from weft.hw.top import FlatTop
from weft.network_core.config import has_single_port

__all__ = ["NetworkTop", "network_core"]


def network_core(config):
    """Return the core of ``config``: with a microprogram if its memory has one port."""
    return (MicroCore if has_single_port(config.array) else NetworkCore)(config)


class NetworkTop(FlatTop):
    """`NetworkCore`, with a separate port for each member of its interface.

    Attributes
    ----------
    write_valid : In; write_ready : Out; write_address, write_data, write_enable : In
        Writes of the host; an address is ``Cat(bank, word)``.
    read_valid : In; read_ready : Out; read_address : In
        Reads of the host.
    data_valid : Out; data : Out, ``read_vectors`` vectors
        The data of reads.
    begin_valid, begin_list, begin_log : In
        Start of a list.
    list_abort, base, limit : In
    state, error, job, cycles, result, result_bytes : Out
        The members of `weft.hw.network_core.interface.NetworkStatus`.
    finished : Out
    program_base, program_limit : In; program_idle : Out; awvalid, awready, ... : In or Out
        With a program memory: the pins of its master, with the names of AXI4 in small letters.
    """

    def __init__(self, config):
        core = network_core(config)
        write, status = core.writes.payload, core.status
        super().__init__(core, {
            "write_valid": (In, core.writes.valid),
            "write_ready": (Out, core.writes.ready),
            "write_address": (In, write.address.as_value()),
            "write_data": (In, write.data),
            "write_enable": (In, write.enable),
            "read_valid": (In, core.reads.request.valid),
            "read_ready": (Out, core.reads.request.ready),
            "read_address": (In, core.reads.request.payload.as_value()),
            "data_valid": (Out, core.reads.data_valid),
            "data": (Out, core.reads.data.as_value()),
            "begin_valid": (In, core.begin.valid),
            "begin_list": (In, core.begin.list.as_value()),
            "begin_log": (In, core.begin.log.as_value()),
            "list_abort": (In, core.abort),
            "base": (In, core.window.base),
            "limit": (In, core.window.limit),
            "state": (Out, status.state),
            "error": (Out, status.error),
            "job": (Out, status.job),
            "cycles": (Out, status.cycles),
            "result": (Out, status.result.as_value()),
            "result_bytes": (Out, status.result_bytes),
            "finished": (Out, core.finished),
            **(_program(core) if config.program_words else {}),
        })


def _program(core):
    """The ports of the program memory."""
    ports = {
        "program_base": (In, core.program_base), "program_limit": (In, core.program_limit),
        "program_idle": (Out, core.program_idle),
    }
    for name, flow in (("aw", Out), ("w", Out), ("b", In), ("ar", Out), ("r", In)):
        channel, answer = getattr(core.axi, name), In if flow == Out else Out
        ports |= {
            f"{name}valid": (flow, channel.valid), f"{name}ready": (answer, channel.ready),
            **{
                f"{name}{field}": (flow, Value.cast(channel.payload[field]))
                for field in channel.payload.shape().members
            },
        }
    return ports
