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
from weft.models.c_code.tensors import array, is_alias, numbers, struct
from weft.models.errors import ModelError
from weft.models.network_core.prediction import program_conditions
from weft.models.network_core.program import NetworkCoreProgram
from weft.models.work import HostWork

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
        several inferences in a list, or the prefix is not valid.
    """
    check_prefix(prefix)
    _check(program)
    return _NetworkCoreGenerator(program).files(prefix)


def _check(program):
    """Raise ModelError for the first thing without C code."""
    require_no_state(program, program.host)
    require_one(program)
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
        program, load, body = self._program, [], []
        for number, segment in enumerate(program.segments):
            self._image(f"run{number}", segment.run)
            load += self._store(segment.run_first, f"run{number}")
        for number, part in enumerate(program.setup):
            self._image(f"setup{number}", part)
            load += self._store(0, f"setup{number}")
            load += checked_call(f"weft_run(core, 0, {program.log})")
        for segment in program.segments:
            body += [line for step in segment.before for line in self._host(step)]
            for entry in segment.written:
                body += self._write(entry)
            body += checked_call(f"weft_run(core, {segment.run_first}, {program.log})")
            for result in segment.results:
                tensor = self._tensors.of(result.tensor)
                body += checked_call(f"net_read_map(core, &{self._map(result.place)}, {tensor})")
        body += [line for step in program.after for line in self._host(step)]
        return self._filled(
            CHIP_HEADER, CHIP_SOURCE, prefix, cycles=f"{program.cycles:,}",
            ram=max(self._tensors.arena, 1) + self._row, row=self._row,
            hash=f"0x{program.config.hash:08x}u", load="\n".join(load), body="\n".join(body),
            **self._program_texts(prefix),
        )

    def _store(self, first, image):
        """Return the call that writes an image to the memory of lists, from vector ``first`` on."""
        if self._program.config.program_words:
            return checked_call(f"weft_program_write(core, {first}, {image}, sizeof {image})")
        return checked_call(f"weft_write(core, {first}, NULL, {image}, sizeof {image})")

    def _program_texts(self, prefix):
        """Return the texts about the program memory."""
        program, config = self._program, self._program.config
        if not config.program_words:
            return {"memory": "memory of the core", "program": "", "conditions": ""}
        row = config.banks * config.array.depth
        size = -(-program.program_memory_used // row) * row
        macro = public_name(program.name, prefix).upper()
        return {
            "memory": f"program memory,\n * which has {macro}_PROGRAM_BYTES bytes or more. Call"
            " weft_program() before",
            "program": f"{macro}_PROGRAM_BYTES = {size}, /* of the memory for weft_program() */\n"
            "    ",
            "conditions": f"\n * The cycles are for {program_conditions(config)}."
            .replace("cycle, and", "cycle,\n * and"),
        }

    def _image(self, name, data):
        """Add an array of bytes of the memory."""
        self._texts.append(array("int8_t", name, np.frombuffer(data, np.int8)))
        self._constant_bytes += len(data)

    def _map(self, place):
        """Add a map; return its name."""
        name = f"map{self._maps}"
        self._maps += 1
        pitches = place.pitches
        self._texts.append(struct("net_map", name, (
            place.first, pitches.pitch, pitches.row_pitch, place.height, place.width,
            place.channels,
        )))
        return name

    def _write(self, entry):
        """Return the lines that write an input map."""
        form, place = entry.form, self._map(entry.place)
        size, name = (form.height, form.width, form.channels), "NULL"
        if form.map_size != size:
            name = f"&form{self._maps}"
            self._texts.append(struct(
                "net_form", name[1:], numbers((*size, *form.block, *form.offset, form.fill))
            ))
            self._row = max(self._row, entry.place.width * entry.place.channels)
        tensor = self._tensors.of(form.tensor)
        return checked_call(f"net_write_map(core, &{place}, {name}, {tensor}, row)")

    def _host(self, step):
        """Return the lines of an operator of the host."""
        if is_alias(step, self._program.outputs):
            return []
        self._calls += 1
        text = self._text(step, self._call(self._calls - 1, step), step.inputs)
        return [f"    /* {' and '.join(step.operators)} */", f"    {text};"]


CHIP_HEADER = """\
/*
 * The network @name@ on a Weft network core: @operators@ operators in one call.
 *
 * @name@_load() writes lists, weights and parameters to the @memory@.
 * @name@_run() computes one inference. `input` has the int8 values of the network's input; the
 * values of its output are written to `output`. They must not overlap.
 *
 * Both call the driver of the core's IP kit, and are C99 without heap and library, too. They return
 * WEFT_OK or the error of the driver. After WEFT_ERR_NOT_LOADED the network must be loaded again:
 * the core was reset, a list ended with an error, or another network was loaded. All calls share
 * the static memory, so they must follow each other. The core must have the NetworkCoreConfig for
 which * the network was compiled. * * An inference takes @cycles@ cycles of the core, beside the
 time of the processor.@conditions@ */
#ifndef @NAME@_NET_H
#define @NAME@_NET_H

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    @NAME@_INPUT_BYTES = @input@,
    @NAME@_OUTPUT_BYTES = @output@,
    @NAME@_CONSTANT_BYTES = @constant@, /* lists, weights, parameters and tables */
    @program@@NAME@_RAM_BYTES = @ram@ /* static memory */
};

int @name@_load(weft_core *core);
int @name@_run(weft_core *core, const int8_t *input, int8_t *output);

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

int @name@_load(weft_core *core)
{
    int error;
    if (core == NULL)
        return WEFT_ERR_NULL;
    core->loaded = NULL;
@load@
    core->loaded = run0;
    return WEFT_OK;
}

int @name@_run(weft_core *core, const int8_t *input, int8_t *output)
{
    int error;
    (void)arena, (void)row;
    if (core == NULL || input == NULL || output == NULL)
        return WEFT_ERR_NULL;
    if (core->loaded != run0)
        return WEFT_ERR_NOT_LOADED;
@body@
    return WEFT_OK;
}
"""
