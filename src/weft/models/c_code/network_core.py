"""Writes the C files of a network for a network core: images of its memory, load and run."""

import numpy as np

from weft.models.c_code.generator import (
    Generator,
    check_prefix,
    checked_call,
    no_code,
    public_name,
    require_no_state,
    require_one,
)
from weft.models.c_code.operators import operator_problem
from weft.models.c_code.tensors import (
    array,
    is_alias,
    numbers,
    struct,
)
from weft.models.c_code.tensors import program as definition_of_program
from weft.models.errors import ModelError
from weft.models.network_core.prediction import program_conditions
from weft.models.network_core.program import NetworkCoreProgram
from weft.models.network_core.resident import resident_writes
from weft.models.work import HostWork
from weft.network_core.cycles.memory import BURST
from weft.network_core.descriptors import split

__all__ = ["CHIP_HEADER", "CHIP_SOURCE", "network_core_c_files"]


def network_core_c_files(program: NetworkCoreProgram, prefix: str = "weft") -> dict[str, bytes]:
    """Return the C files of a network, by name.

    Parameters
    ----------
    program : NetworkCoreProgram
    prefix : str
        Prefix of the kit's driver.

    Raises
    ------
    ModelError
        If there is no C code for an operator of the host or for a tensor, the program computes
        several inferences in a list, its lists lie on the chip beside a program memory, or the
        prefix is not valid.
    """
    check_prefix(prefix)
    _check(program)
    return _NetworkCoreGenerator(program).files(prefix)


def _check(program):
    """Raise ModelError for the first thing without C code."""
    require_no_state(program, program.host)
    require_one(program)
    if program.config.program_words and program.lists_on_chip:
        raise ModelError(
            f"{program.name}: the lists must lie in the program memory for C code, not on the chip:"
            " compile the network for a target without the timing of its memory"
        )
    if program.batch != 1:
        raise ModelError(f"{program.name}: batch must be 1 for C code, not {program.batch}")
    tensors = program.tensors
    for step in program.host:
        if isinstance(step.work, HostWork):
            reason = operator_problem(step, tensors)
        else:
            reason = step.placement.reason or "the host computes a product"
        used = [*step.inputs, *step.outputs] if not reason else []
        for number in used:
            if number < 0 or tensors[number].dtype != np.int8:
                kind = "absent" if number < 0 else tensors[number].dtype
                reason = f"tensors must be int8, not {kind}"
        if reason:
            raise no_code(program, step, reason)
    maps = [entry.form.tensor for part in program.segments for entry in part.written]
    maps += [result.tensor for part in program.segments for result in part.results]
    for number in (*program.inputs, *program.outputs, *maps):
        if tensors[number].dtype != np.int8:
            raise ModelError(
                f"{program.name}: tensor {number} must be int8 for C code, not"
                f" {tensors[number].dtype}"
            )


class _NetworkCoreGenerator(Generator):
    """Collects the definitions and the calls of all segments."""

    def __init__(self, program):
        accesses = []
        for segment in program.segments:
            accesses += [(step.inputs, step.outputs) for step in segment.before]
            accesses += [((entry.form.tensor,), ()) for entry in segment.written]
            accesses.append(((), [result.tensor for result in segment.results]))
        accesses += [(step.inputs, step.outputs) for step in program.after]
        super().__init__(program, accesses, "net_map.h")
        self._row = 1  # bytes
        self._maps = self._calls = 0  # numbers in names

    def files(self, prefix):
        """Return the files."""
        program, body = self._program, []
        name = public_name(program.name, prefix)
        load = self._load(name)
        results = []  # of the list before
        for number, segment in enumerate(program.segments):
            lines = results + [line for step in segment.before for line in self._host(step)]
            for entry in segment.written:
                lines += self._write(entry)
            lines.append(f"    return started(core, {segment.run_first});")
            body += _case(f"case {number}:", lines)
            results = []
            for result in segment.results:
                results += self._read(result)
        last = [line for step in program.after for line in self._host(step)]
        body += _case("default:", [*results, *last, "    return WEFT_OK;"])
        return self._filled(
            CHIP_HEADER, CHIP_SOURCE, prefix, cycles=f"{program.cycles:,}", log=program.log,
            ram=max(self._tensors.arena, 1) + self._row, row=self._row,
            hash=f"0x{program.config.hash:08x}u", load="\n".join(load), body="\n".join(body),
            **self._program_texts(prefix), **self._variable_texts(name),
        )

    def _variable_texts(self, name):
        """Add the first values of the variables; return the texts about them."""
        program, lines = self._program, []
        if not program.variables:
            return dict.fromkeys(VARIABLE_TEXTS, "")
        initial = {state.before: state.initial for state in program.states}
        for number, entry in enumerate(program.variables):
            value, place = initial[entry.form.tensor], self._map(entry.place)
            self._texts.append(array("int8_t", f"first{number}", value))
            self._constant_bytes += value.nbytes
            call = f"net_write_map(core, &{place}, NULL, first{number}, row)"
            lines += checked_call(call)
        return {
            key: text.replace("@name@", name).replace("@lines@", "\n".join(lines))
            for key, text in VARIABLE_TEXTS.items()
        }

    def _load(self, name):
        """Add the images of the memory; return the lines that load them.

        A program memory is one image, with the only setup part before the lists.
        """
        program, load = self._program, []
        setup = list(program.setup)
        if program.config.program_words:
            depth = program.config.array.depth
            image = setup.pop() if len(setup) == 1 else b""
            for segment in program.segments:
                image = image.ljust(segment.run_first * depth, b"\0") + segment.run
            self._texts.append(definition_of_program(
                f"{name}_program", self._program_bytes, BURST * program.config.beat_bytes,
                np.frombuffer(image, np.int8),
            ))
            call = f"weft_program_write(core, 0, {name}_program, {len(image)})"
            load += checked_call(call)
            if len(setup) < len(program.setup):
                load += checked_call(f"weft_run(core, 0, {program.log})")
        else:
            for number, segment in enumerate(program.segments):
                load += self._image(segment.run_first, f"run{number}", segment.run)
        if program.config.resident:
            writes = [write for part in setup for write in resident_writes(program.config, part)]
            for number, (first, data) in enumerate(writes):
                load += self._image(first, f"loaded{number}", data)
            return load
        for number, part in enumerate(setup):
            load += self._image(0, f"setup{number}", part)
            load += checked_call(f"weft_run(core, 0, {program.log})")
        return load

    def _image(self, first, name, data):
        """Add an array of bytes; return the call that writes it from vector ``first`` on."""
        self._texts.append(array("int8_t", name, np.frombuffer(data, np.int8)))
        self._constant_bytes += len(data)
        if self._program.config.program_words:
            return checked_call(f"weft_program_write(core, {first}, {name}, sizeof {name})")
        return checked_call(f"weft_write(core, {first}, NULL, {name}, sizeof {name})")

    @property
    def _program_bytes(self):
        """The bytes of the program memory: whole words of all banks."""
        row = self._program.config.banks * self._program.config.array.depth
        return -(-self._program.program_memory_used // row) * row

    def _program_texts(self, prefix):
        """Return the texts about the program memory."""
        program, config = self._program, self._program.config
        name = public_name(program.name, prefix)
        if not config.program_words:
            what = "lists, weights and parameters"
            return {
                "load_text": f" * {name}_load() writes {what} to the memory of the core.",
                "program": "", "declaration": "", "conditions": "", "loaded": "run0",
                "constants": f"{what}, and tables",
            }
        conditions = program_conditions(config, self._program.target.memory)
        return {
            "load_text": PROGRAM_TEXT.replace("@name@", name).replace("@NAME@", name.upper()),
            "program": f"{name.upper()}_PROGRAM_BYTES = {self._program_bytes}, /* of"
            f" {name}_program */\n    ",
            "declaration": PROGRAM_DECLARATION.replace("@name@", name)
            .replace("@NAME@", name.upper()),
            "conditions": f"\n * The cycles are for {conditions}.".replace(
                ", and", ",\n * and"
            ),
            "loaded": f"{name}_program", "constants": "tables",
        }

    def _map(self, place):
        """Add a map; return its name."""
        name = f"map{self._maps}"
        self._maps += 1
        pitches = place.pitches
        step = pitches.row_pitch - (place.width - 1) * pitches.pitch  # to the next row
        self._texts.append(struct("net_map", name, (
            place.first, pitches.pitch, pitches.row_pitch, place.height, place.width,
            place.channels, f"0x{split(step, self._program.config.banks):x}u",
        )))
        return name

    def _write(self, entry):
        """Return the lines that write an input map."""
        form, place = entry.form, self._map(entry.place)
        size, name = (form.height, form.width, form.channels), "NULL"
        planes = form.channels_first and _has_planes(*size)
        if form.map_size != size or planes:
            name = f"&form{self._maps}"
            (_, block), (_, offset), width = form.block, form.offset, entry.place.width
            begin = min(-(-offset // block), width)
            end = max(begin, min((form.width + offset) // block, width))
            self._texts.append(struct("net_form", name[1:], numbers(
                (*size, *form.block, *form.offset, begin, end, form.fill, int(planes))
            )))
            self._row = max(self._row, width * entry.place.channels + 3)
        tensor = self._tensors.of(form.tensor)
        return checked_call(f"net_write_map(core, &{place}, {name}, {tensor}, row)")

    def _read(self, result):
        """Return the lines that read a result."""
        place, tensor = result.place, self._tensors.of(result.tensor)
        name, first = self._map(place), self._program.tensors[result.tensor].channels_first
        if first and _has_planes(place.height, place.width, place.channels):
            self._row = max(self._row, place.channels)
            return checked_call(f"net_read_planes(core, &{name}, {tensor}, row)")
        return checked_call(f"net_read_map(core, &{name}, {tensor})")

    def _host(self, step):
        """Return the lines of an operator of the host."""
        if is_alias(step, self._program.outputs):
            return []
        self._calls += 1
        text = self._text(step, self._call(self._calls - 1, step), step.inputs)
        return [f"    /* {' and '.join(step.operators)} */", f"    {text};"]


def _has_planes(height, width, channels):
    """Whether the order channel, row, column is another one than row, column, channel."""
    return height * width > 1 and channels > 1


def _case(label, lines):
    """Return a case of a switch."""
    return [f"    {label}", *(f"    {line}" for line in lines)]


VARIABLE_TEXTS = {
    "reset_text": """
 *
 * The network has variables, which stay in the memory of the core from inference to inference.
 * @name@_load() and @name@_reset() give them their first values. After
 * WEFT_ERR_NOT_LOADED their values are lost.\
""",
    "reset_declaration": "int @name@_reset(weft_core *core);\n",
    "reset": """\
/* Write the first values of the variables. */
static int first_values(weft_core *core)
{
    int error;
@lines@
    return WEFT_OK;
}

""",
    "first": """\
    error = first_values(core);
    if (error != WEFT_OK)
        return error;
""",
    "reset_function": """
int @name@_reset(weft_core *core)
{
    if (core == NULL)
        return WEFT_ERR_NULL;
    if (core->loaded != @loaded@)
        return WEFT_ERR_NOT_LOADED;
    if (running.core != NULL || weft_is_busy(core))
        return WEFT_ERR_REFUSED;
    return first_values(core);
}
""",
}
PROGRAM_TEXT = """\
 * @name@_program has lists, weights and parameters, and space for the log. It is the program memory
 * itself, if weft_program() gets it before @name@_load(). If weft_program() gets other memory of
 * @NAME@_PROGRAM_BYTES bytes, the load copies it there.
 * @name@_load() makes the network ready.\
"""
PROGRAM_DECLARATION = """\
/*
 * What stands before the definition of the program: nothing, a section of the linker, or `const` if
 * it is copied. Define it for all files that include this header.
 */
#ifndef NET_PROGRAM
#define NET_PROGRAM
#endif
extern NET_PROGRAM int8_t @name@_program[@NAME@_PROGRAM_BYTES];

"""
CHIP_HEADER = """\
/*
 * The network @name@ on a Weft network core: @operators@ operators in one call.
 *
@load_text@
 * @name@_run() computes one inference. `input` has the int8 values of the network's input; the
 * values of its output are written to `output`. They must not overlap.
 *
 * @name@_start() starts an inference and returns. @name@_finish() returns WEFT_BUSY
 * until it has ended, then WEFT_OK or its error. It writes `output`, so both must stay until then.
 * The core's interrupt (weft_irq_enable) says when to call @name@_finish(): at the end of each
 * list, of which a network may have several. Either the interrupt handler calls it, or the thread,
 * and not both. A start before the end of an inference is WEFT_ERR_REFUSED.
 *
 * All call the driver of the core's IP kit, and are C99 without heap and library, too. They return
 * WEFT_OK or the error of the driver. After WEFT_ERR_NOT_LOADED the network must be loaded again:
 * the core was reset, a list ended with an error, or another network was loaded. All calls share
 * the static memory, so inferences must follow each other. The core must have the NetworkCoreConfig
 * for which the network was compiled.
 *
 * An inference takes @cycles@ cycles of the core, beside the time of the
 * processor.@conditions@@reset_text@
 */
#ifndef @NAME@_NET_H
#define @NAME@_NET_H

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    @NAME@_INPUT_BYTES = @input@,
    @NAME@_OUTPUT_BYTES = @output@,
    @NAME@_CONSTANT_BYTES = @constant@, /* @constants@ */
    @program@@NAME@_RAM_BYTES = @ram@ /* static memory */
};

@declaration@int @name@_load(weft_core *core);
@reset_declaration@int @name@_run(weft_core *core, const int8_t *input, int8_t *output);
int @name@_start(weft_core *core, const int8_t *input, int8_t *output);
int @name@_finish(weft_core *core);

#ifdef __cplusplus
}
#endif

#endif
"""
CHIP_SOURCE = """\
/* The lists of the network @name@, and the operators of the host before and after them. */
#include "net.h"
#include "net_data.h"

#if WEFT_HASH != @hash@
#error "the network was compiled for another NetworkCoreConfig than the driver"
#endif

/* Activations of the host, which share memory if they are needed at different times. */
static int8_t arena[@arena@] NET_ALIGNED;
/* A row of pixels of an input map. */
static int8_t row[@row@] NET_ALIGNED;
/* The inference that was started. The thread and the interrupt handler use it. */
static volatile struct {
    weft_core *core; /* NULL: none */
    const int8_t *input;
    int8_t *output;
    uint32_t list;
    int between; /* no list runs: the processor works for the next one */
} running;

@reset@int @name@_load(weft_core *core)
{
    int error;
    if (core == NULL)
        return WEFT_ERR_NULL;
    if (weft_is_busy(core))
        return WEFT_ERR_REFUSED;
    if (running.core == core)
        running.core = NULL;
    core->loaded = NULL;
@load@
@first@    core->loaded = @loaded@;
    return WEFT_OK;
}
@reset_function@
/* Start a list. The interrupt at its end waits until @name@_finish() may be called. */
static int started(weft_core *core, uint32_t list)
{
    const uint32_t enabled = WEFT_REGISTER(core, irq_enable);
    int error;
    WEFT_WRITE(core->base, offsetof(weft_t, irq_enable), 0);
    error = weft_start(core, list, @log@);
    running.between = 0;
    WEFT_WRITE(core->base, offsetof(weft_t, irq_enable), enabled);
    return error == WEFT_OK ? WEFT_BUSY : error;
}

/*
 * Do all from the end of a list to the start of the next one: WEFT_BUSY, or after the last one
 * WEFT_OK.
 */
static int advance(weft_core *core, uint32_t list, const int8_t *input, int8_t *output)
{
    int error = WEFT_OK;
    (void)arena, (void)row, (void)input, (void)output, (void)error;
    switch (list) {
@body@
    }
}

int @name@_start(weft_core *core, const int8_t *input, int8_t *output)
{
    int error;
    if (core == NULL || input == NULL || output == NULL)
        return WEFT_ERR_NULL;
    if (core->loaded != @loaded@)
        return WEFT_ERR_NOT_LOADED;
    if (running.core != NULL || weft_is_busy(core))
        return WEFT_ERR_REFUSED;
    running.between = 1;
    running.input = input;
    running.output = output;
    running.list = 0;
    running.core = core;
    error = advance(core, 0, input, output);
    if (error == WEFT_BUSY)
        return WEFT_OK;
    running.core = NULL;
    return error;
}

int @name@_finish(weft_core *core)
{
    int error;
    if (core == NULL)
        return WEFT_ERR_NULL;
    if (running.core != core)
        return WEFT_ERR_IDLE;
    if (running.between)
        return WEFT_BUSY;
    error = core->loaded == NULL || core->loaded == @loaded@ ? weft_finish(core)
                                                          : WEFT_ERR_NOT_LOADED;
    if (error == WEFT_OK) {
        running.between = 1;
        running.list++;
        error = advance(core, running.list, running.input, running.output);
    }
    if (error != WEFT_BUSY)
        running.core = NULL;
    return error;
}

int @name@_run(weft_core *core, const int8_t *input, int8_t *output)
{
    uint32_t enabled;
    int error;
    if (core == NULL || core->loaded != @loaded@)
        return @name@_start(core, input, output); /* an error, without an access */
    enabled = WEFT_REGISTER(core, irq_enable); /* no interrupt: this function waits */
    WEFT_WRITE(core->base, offsetof(weft_t, irq_enable), 0);
    error = @name@_start(core, input, output);
    if (error == WEFT_OK) {
        do
            error = weft_wait(core);
        while (error == WEFT_OK && (error = @name@_finish(core)) == WEFT_BUSY);
        if (error != WEFT_OK)
            running.core = NULL;
    }
    WEFT_WRITE(core->base, offsetof(weft_t, irq_enable), enabled);
    return error;
}
"""
