"""Templates of the C files of a network for a network core; ``@key@`` stands for a value."""

__all__ = ["CHIP_HEADER", "CHIP_SOURCE"]

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
