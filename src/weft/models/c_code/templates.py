"""Templates of the C files of a network; ``@key@`` stands for a value."""

__all__ = ["DATA", "HEADER", "LICENCE", "SOURCE"]

LICENCE = "/* SPDX-License-Identifier: BSD-2-Clause */\n"
HEADER = """\
/*
 * The network @name@ on a Weft core: @operators@ operators in one call.
 *
 * @name@_run() computes one inference.
 * It calls the driver of the core's IP kit, and is C99 without heap and library, too. It returns
 * WEFT_OK or the error of the driver. `input` has the int8 values of the network's input; the
 * values of its output are written to `output`. They must not overlap. All calls share the static
 * memory, so they must follow each other. The core must have the Config for which the network was
 * compiled.
 *
 * Bus dma: the core writes to `output` and to the static memory, so no cache may hold old copies.
 * core->buffer must have @NAME@_BUFFER_BYTES bytes. Bus stream: core->buffer and core->results must
 * have space for the commands and results of each job; otherwise the error is WEFT_ERR_NO_SPACE.
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
    @NAME@_CONSTANT_BYTES = @constant@, /* weights, parameters and tables */
#if WEFT_DMA
    @NAME@_BUFFER_BYTES = @buffer@, /* of core->buffer */
    @NAME@_RAM_BYTES = @dma_ram@ /* static memory */
#else
    @NAME@_RAM_BYTES = @ram@ /* static memory */
#endif
};

int @name@_run(weft_core *core, const int8_t *input, int8_t *output);

#ifdef __cplusplus
}
#endif

#endif
"""
DATA = """\
/* Weights, parameters and tables of the network @name@. */
#ifndef @NAME@_NET_DATA_H
#define @NAME@_NET_DATA_H

@includes@

#ifdef __GNUC__
#define NET_ALIGNED __attribute__((aligned(8)))
#else
#define NET_ALIGNED
#endif

@definitions@

#endif
"""
SOURCE = """\
/* The operators of the network @name@, in the order of its file. */
#include "net.h"
#include "net_data.h"

#if WEFT_HASH != @hash@
#error "the network was compiled for another Config than the driver"
#endif

/* Activations, which share memory if they are needed at different times. */
static int8_t arena[@arena@] NET_ALIGNED;
/* A block of rows of A. */
static int8_t rows[@a@] NET_ALIGNED;
#if WEFT_DMA
/* Results of a block, if their place does not have the alignment that the core needs. */
static int8_t results[@results@] NET_ALIGNED;
#else
static int8_t *const results = NULL;
#endif

int @name@_run(weft_core *core, const int8_t *input, int8_t *output)
{
    int error = WEFT_OK;
    (void)core, (void)arena, (void)rows, (void)results;
@body@
    return error;
}
"""
