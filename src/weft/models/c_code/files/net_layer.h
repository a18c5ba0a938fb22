/* Layers with weights: products on the core, whose rows of A are windows of a feature map. */
#ifndef NET_LAYER_H
#define NET_LAYER_H

#include "net_bytes.h"
#include "weft.h"

/*
 * Row (y, x) of A has the inputs of output (y, x), in the order kernel row, kernel column, channel:
 * those at (y * stride_y + ky * dilation_y - top, x * stride_x + kx * dilation_x - left). `spread`
 * is the distance of two inputs in the map that the windows read; `zero` fills all other places.
 */
typedef struct net_window {
    int32_t height, width, channels; /* of the input */
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x;
    int32_t top, left, spread_y, spread_x;
    int32_t out_height, out_width;
    int8_t zero;
} net_window;

/* One product of a layer: some groups of channels. The columns of B are `stride` bytes apart. */
typedef struct net_part {
    uint32_t k, n;
    int32_t first_input, inputs; /* channels of the input */
    uint32_t first_output;       /* channel of the output */
    const int8_t *b;
    const weft_column *columns;
} net_part;

typedef struct net_layer {
    uint32_t m, outputs;        /* rows, and bytes of a row of the output */
    uint32_t block;             /* rows of A that are computed together */
    uint32_t stride;            /* bytes from a row of A, or a column of B, to the next */
    const net_window *window;   /* NULL: the input is A */
    const net_part *parts;
    uint32_t count;             /* parts */
    const uint8_t *table;       /* activation table, or NULL */
} net_layer;

/* The place of an input on one axis, or -1 if the window reads the border there. */
static inline int32_t net_place(int32_t place, int32_t spread, int32_t size)
{
    if (place < 0)
        return -1;
    if (spread > 1) {
        if (place % spread != 0)
            return -1;
        place /= spread;
    }
    return place < size ? place : -1;
}

static inline int8_t *net_append_border(int8_t *a, int8_t zero, int32_t count)
{
    for (; count > 0; count--)
        *a++ = zero;
    return a;
}

/* Write a row of A: the window of output `row`. */
static inline void net_gather(const net_window *w, const net_part *part, const int8_t *x,
                              uint32_t row, int8_t *a)
{
    const int32_t line = (int32_t)row / w->out_width, inputs = part->inputs;
    const int32_t first = ((int32_t)row - line * w->out_width) * w->stride_x - w->left;
    const int32_t top = line % w->out_height * w->stride_y - w->top;
    const int32_t last = first + (w->kernel_x - 1) * w->dilation_x;
    const int inside = w->spread_x == 1 && first >= 0 && last < w->width;
    const int adjacent = inside && w->dilation_x == 1 && inputs == w->channels;
    const int8_t *map = x + line / w->out_height * w->height * w->width * w->channels;
    for (int32_t ky = 0; ky < w->kernel_y; ky++) {
        const int32_t y = net_place(top + ky * w->dilation_y, w->spread_y, w->height);
        const int8_t *from = map + (y < 0 ? 0 : y) * w->width * w->channels + part->first_input;
        if (y < 0)
            a = net_append_border(a, w->zero, w->kernel_x * inputs);
        else if (adjacent)
            a = net_append(a, from + first * w->channels, w->kernel_x * inputs);
        else
            for (int32_t kx = 0; kx < w->kernel_x; kx++) {
                int32_t at = first + kx * w->dilation_x;
                if (!inside)
                    at = net_place(at, w->spread_x, w->width);
                if (at < 0)
                    a = net_append_border(a, w->zero, inputs);
                else
                    a = net_append(a, from + at * w->channels, inputs);
            }
    }
}

/* Compute rows of C. `results` is memory for C if the core cannot write to `c` (bus dma). */
static inline int net_product(weft_core *core, const net_layer *layer, const net_part *part,
                              const weft_weights *weights, const int8_t *a, uint32_t rows,
                              int8_t *c, int8_t *results)
{
    weft_product p;
    int error;
    p.m = rows;
    p.n = part->n;
    p.k = part->k;
    p.a = a;
    p.a_row_stride = (ptrdiff_t)layer->stride;
    p.a_k_stride = 1;
    p.b = part->b;
    p.b_k_stride = 1;
    p.b_col_stride = (ptrdiff_t)layer->stride;
    p.weights = weights;
    p.c = c;
    p.c_row_stride = (ptrdiff_t)layer->outputs;
    p.epilogue = WEFT_REQUANTIZE;
    if (layer->table)
        p.epilogue |= WEFT_TABLE;
    p.columns = part->columns;
    p.bias = NULL;
#if WEFT_DMA
    if ((WEFT_ADDRESS(c) | layer->outputs) % WEFT_NARROW_RESULT_ALIGN != 0) {
        const uint32_t unit = WEFT_NARROW_RESULT_ALIGN, over = WEFT_ADDRESS(results) % unit;
        results += over ? unit - over : 0;
        p.c = results;
        p.c_row_stride = (ptrdiff_t)((part->n + unit - 1) / unit * unit);
    }
#else
    (void)results;
#endif
    error = weft_matmul(core, &p);
#if WEFT_DMA
    if (error == WEFT_OK && p.c != c)
        for (uint32_t row = 0; row < rows; row++)
            for (uint32_t n = 0; n < part->n; n++)
                c[row * layer->outputs + n] = results[row * (uint32_t)p.c_row_stride + n];
#endif
    return error;
}

/* Compute all rows of a part. Weights that fit the core are sent once. */
static inline int net_rows(weft_core *core, const net_layer *layer, const net_part *part,
                           const int8_t *x, int8_t *y, int8_t *a, int8_t *results)
{
    weft_weights weights;
    int loaded = 0, error = WEFT_OK;
    if (layer->block < layer->m) {
        error = weft_load_b(core, &weights, part->b, 1, (ptrdiff_t)layer->stride, part->n, part->k);
        loaded = error == WEFT_OK;
        if (error == WEFT_ERR_NO_SPACE) /* B is sent with each block */
            error = WEFT_OK;
    }
    for (uint32_t row = 0; row < layer->m && error == WEFT_OK; row += layer->block) {
        const uint32_t left = layer->m - row, rows = left < layer->block ? left : layer->block;
        const int8_t *block = x + row * layer->stride;
        if (layer->window) {
            for (uint32_t n = 0; n < rows; n++)
                net_gather(layer->window, part, x, row + n, a + n * layer->stride);
            block = a;
        }
        error = net_product(core, layer, part, loaded ? &weights : NULL, block, rows,
                            y + row * layer->outputs + part->first_output, results);
    }
    if (loaded) {
        const int freed = weft_free_b(core, &weights);
        error = error == WEFT_OK ? freed : error;
    }
    return error;
}

/* Compute a layer: WEFT_OK, or the error of the driver. `a` is memory for a block of A. */
static inline int net_compute(weft_core *core, const net_layer *layer, const int8_t *x, int8_t *y,
                              int8_t *a, int8_t *results)
{
    int error = WEFT_OK;
#if WEFT_HAS_TABLE
    if (layer->table)
        error = weft_load_table(core, layer->table);
#endif
    for (uint32_t n = 0; n < layer->count && error == WEFT_OK; n++)
        error = net_rows(core, layer, &layer->parts[n], x, y, a, results);
    return error;
}

#endif
