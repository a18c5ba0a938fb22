"""Writes the C files of a network for the firmware: its code, an input, the expected output."""

import math
import sys
import zipfile
from pathlib import Path

import numpy as np

import weft
from weft.ip import identifier
from weft.models.c_code import network_core_c_files
from weft.models.errors import ModelError
from weft.models.network_core.prediction import predict_run
from weft.models.network_core.program import NetworkCoreProgram
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import ProgramTiming

__all__ = ["compiled_network", "write_network"]

ENTRY_BYTES = 8  # of a job in the log: its start and its end
# LiteDRAM with an SDRAM of 16 bits: cycles of a beat of 16 bytes, and before its first one. They
# were measured with six networks. 8 cycles transfer the beat; refreshes and changes of the row take
# another one, on average.
BEAT_CYCLES, SDRAM_LATENCY = 9, 8


def compiled_network(network: Path, config: NetworkCoreConfig) -> NetworkCoreProgram:
    """Compile a TFLite file.

    Raises
    ------
    SystemExit
        With exit code 2 and a message, if the file cannot be read or compiled, if its C code needs
        an operator that does not exist, if the network needs several lists, whose logs overwrite
        each other, or if the file ``NAME.npz`` beside it is not as `write_network` says.
    """
    try:
        program = weft.load(network).compile(config)
        network_core_c_files(program)
        _recorded(network, program)
        if len(program.segments) != 1:
            raise ModelError(
                f"{network.name}: the network must be one list of the core, not"
                f" {len(program.segments)}: the host computes operators between its layers"
            )
    except (OSError, ModelError) as error:
        text = f"{network}: {error.strerror}" if isinstance(error, FileNotFoundError) else error
        print(f"litex_soc: error: {text}", file=sys.stderr)
        raise SystemExit(2) from error
    return program


def write_network(network: Path, program: NetworkCoreProgram, folder: Path) -> int:
    """Write the C files of a network into a folder; the predicted cycles of its list.

    If a file ``NAME.npz`` lies beside the network, it has an input and the expected output
    (``model_in`` and ``model_out_tflm``, recorded from TensorFlow Lite Micro). Otherwise the
    input is random, and the golden model computes the output.
    """
    config = program.config
    values, expected = _example(network, program)
    predicted, layers = _layers(program, config)
    name = identifier(program.name)
    macro = name.upper()
    lines = [
        '#include "net.h"',
        f'#define NETWORK "{network.name}"',
        f"#define network_load {name}_load",
        f"#define network_run {name}_run",
        f"#define network_program {name}_program",
        "enum {",
        f"    PROGRAM_BYTES = {macro}_PROGRAM_BYTES, OUTPUT_BYTES = {macro}_OUTPUT_BYTES,",
        f"    LOG = {program.log}, ENTRY_VECTORS = {-(-ENTRY_BYTES // config.array.depth)},",
        f"    LAYERS = {len(layers)}, PREDICTED = {predicted}",
        "};",
        _array("input", values), _array("expected", expected),
        "static const struct {",
        "    const char *name;",
        "    uint32_t last_job, predicted;",
        "} layers[] = {", *layers, "};", "",
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for path, data in network_core_c_files(program).items():
        (folder / path).write_bytes(data)
    (folder / "network.h").write_text("\n".join(lines), encoding="utf-8")
    return predicted


def _example(network, program):
    """An input and its output."""
    if recorded := _recorded(network, program):
        return recorded
    shape = program.tensors[program.inputs[0]].shape
    values = np.random.default_rng(1).integers(-128, 128, shape, np.int8)
    with program.open("golden") as session:
        return values, session(values)


def _recorded(network, program):
    """The input and the output in the file beside the network; None without a file."""
    path = network.with_suffix(".npz")
    if not path.exists():
        return None
    try:
        with np.load(path) as arrays:
            values = arrays["model_in"][0], arrays["model_out_tflm"][0]
    except (EOFError, IndexError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ModelError(
            f"{path}: the file must have the arrays model_in and model_out_tflm: {error}"
        ) from error
    tensors = program.inputs[0], program.outputs[0]
    for name, found, tensor in zip(("model_in", "model_out_tflm"), values, tensors, strict=True):
        size = math.prod(program.tensors[tensor].shape)
        if (found.dtype, found.size) != (np.int8, size):
            raise ModelError(
                f"{path}: {name} must have {size} int8 values for each inference, not"
                f" {found.size} of {found.dtype}"
            )
    return values


def _layers(program, config):
    """The predicted cycles of the list, and a line of C for each layer."""
    [segment] = program.segments
    timing = ProgramTiming(SDRAM_LATENCY, 256 * BEAT_CYCLES)
    prediction = predict_run(config, segment.run, segment.run_first, program.log, timing)
    lines, before = [], 0
    for number, layer in enumerate(segment.steps, 1):
        last = layer.first_job + layer.jobs - 1
        end = prediction.jobs[last][1]
        lines.append(
            f'    {{"{number}: {", ".join(layer.operators)}", {last}, {end - before}}},'
        )
        before = end
    return prediction.cycles, lines


def _array(name, values):
    """The definition of a C array of int8 values."""
    return f"static const int8_t {name}[] = {{{', '.join(map(str, values.ravel()))}}};"
