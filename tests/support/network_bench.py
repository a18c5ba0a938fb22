"""Execution of lists by a network core in Amaranth's simulator and in Icarus Verilog."""

from amaranth.hdl import Value

from verif.amaranth_bench import pulse, simulate, ticks
from verif.primitives.proof import run_bench
from weft.hw import export
from weft.hw.network_core.core import NetworkCore, NetworkTop
from weft.network_core.descriptors import BANK_BITS, split

__all__ = ["amaranth_list", "icarus_list"]


def packed(config, vector):
    """The address of a vector as the core's ports have it: ``Cat(bank, word)``."""
    address = split(vector, config.banks)
    bank_bits = (config.banks - 1).bit_length()
    bank, word = address & ((1 << BANK_BITS) - 1), address >> BANK_BITS
    return word << bank_bits | bank


async def write_memory(ctx, core, image):
    """Write whole vectors from vector 0 on."""
    depth = core.config.array.depth
    ctx.set(core.writes.payload.enable, (1 << depth) - 1)
    ctx.set(core.writes.valid, 1)
    for n in range(len(image) // depth):
        ctx.set(Value.cast(core.writes.payload.address), packed(core.config, n))
        vector = image[n * depth : (n + 1) * depth]
        ctx.set(core.writes.payload.data, int.from_bytes(vector, "little"))
        while not (await ctx.tick().sample(core.writes.ready))[-1]:
            pass
    ctx.set(core.writes.valid, 0)


async def read_memory(ctx, core, vectors):
    """The bytes of the first ``vectors`` vectors."""
    found, size = b"", core.config.read_vectors
    for first in range(0, vectors, size):
        first = min(first, core.config.vectors - size)
        ctx.set(Value.cast(core.reads.request.payload), packed(core.config, first))
        ctx.set(core.reads.request.valid, 1)
        while not (await ctx.tick().sample(core.reads.request.ready))[-1]:
            pass
        ctx.set(core.reads.request.valid, 0)
        while True:
            _, _, valid, words = await ctx.tick().sample(
                core.reads.data_valid, Value.cast(core.reads.data)
            )
            if valid:
                break
        data = words.to_bytes(size * core.config.array.depth, "little")
        found = found[: first * core.config.array.depth] + data
    return found


def amaranth_list(config, image, list_vector, log_vector, *, cycles=10_000):
    """Execute a list in Amaranth's simulator; returns the memory and the status at the end."""
    core = NetworkCore(config)
    result = {}

    async def bench(ctx):
        ctx.set(core.window.limit, config.words)
        await write_memory(ctx, core, image)
        ctx.set(Value.cast(core.begin.list), packed(config, list_vector))
        ctx.set(Value.cast(core.begin.log), packed(config, log_vector))
        await pulse(ctx, core.begin.valid)
        while not (await ctx.tick().sample(core.finished))[-1]:
            pass
        await ticks(ctx, 1)
        for name in ("state", "error", "job", "cycles", "result_bytes"):
            result[name] = ctx.get(getattr(core.status, name))
        result["memory"] = await read_memory(ctx, core, len(image) // config.array.depth)

    simulate(core, bench, limit=cycles + 20 * config.vectors)
    return result


# Writes the vectors of `image`, executes the list, prints its status and reads all vectors.
_BENCH = """
module bench;
    reg clk = 0, rst = 1, write_valid = 0, read_valid = 0, begin_valid = 0;
    always #5 clk = ~clk;
    reg [{image_bits}:0] image = {image_size}'h{image};
    reg [31:0] addresses [0:{vectors} - 1];
    reg [31:0] write_address, read_address;
    reg [{vector_bits}:0] write_data;
    wire write_ready, read_ready, data_valid, finished;
    wire [{data_bits}:0] data;
    wire [7:0] state, error;
    wire [31:0] cycles;
    network dut (
        .clk(clk), .rst(rst), .write_valid(write_valid), .write_ready(write_ready),
        .write_address(write_address), .write_data(write_data), .write_enable(~0),
        .read_valid(read_valid), .read_ready(read_ready), .read_address(read_address),
        .data_valid(data_valid), .data(data), .begin_valid(begin_valid),
        .begin_list({list_address}), .begin_log({log_address}), .list_abort(1'b0), .base(0),
        .limit({words}), .state(state), .error(error), .cycles(cycles), .finished(finished)
    );
    integer n;
    initial begin
{addresses}
        repeat (3) @(negedge clk);
        rst = 0;
        for (n = 0; n < {vectors}; n = n + 1) begin
            write_address = addresses[n];
            write_data = image[n * {vector_size} +: {vector_size}];
            write_valid = 1;
            #1;
            while (!write_ready) begin @(negedge clk); #1; end
            @(negedge clk);
        end
        write_valid = 0;
        begin_valid = 1;
        @(negedge clk);
        begin_valid = 0;
        while (!finished) @(negedge clk);
        @(negedge clk);
        $display("%0d %0d %0d", state, error, cycles);
        for (n = 0; n < {vectors}; n = n + 1) begin
            read_address = addresses[n];
            read_valid = 1;
            #1;
            while (!read_ready) begin @(negedge clk); #1; end
            @(negedge clk);
            read_valid = 0;
            while (!data_valid) @(negedge clk);
            $display("%h", data[{vector_size} - 1:0]);
        end
        $finish;
    end
    initial begin
        repeat ({limit}) @(negedge clk);
        $display("the list did not end");
        $finish;
    end
endmodule
"""


def icarus_list(config, image, list_vector, log_vector, *, cycles=10_000):
    """Execute a list in Icarus Verilog; returns state, error, cycles and the memory at its end.

    The memory has at least ``read_vectors`` vectors more than ``image``.
    """
    depth, vectors = config.array.depth, len(image) // config.array.depth
    bench = _BENCH.format(
        image=image[::-1].hex(), image_size=8 * len(image), image_bits=8 * len(image) - 1,
        vectors=vectors, vector_size=8 * depth, vector_bits=8 * depth - 1,
        data_bits=8 * depth * config.read_vectors - 1, words=config.words,
        list_address=packed(config, list_vector), log_address=packed(config, log_vector),
        limit=cycles + 20 * vectors, addresses="\n".join(
            f"        addresses[{n}] = {packed(config, n)};" for n in range(vectors)
        ),
    )
    verilog = export.to_verilog(NetworkTop(config), name="network")
    status, *lines = run_bench({"network.v": verilog, "bench.v": bench}, "bench").splitlines()
    memory = b"".join(bytes.fromhex(line)[::-1] for line in lines)
    return *map(int, status.split()), memory
