/* Layers of a network in plain C: a depthwise convolution needs no rows of A. */
#ifndef PLAIN_LAYER_H
#define PLAIN_LAYER_H

#include "net_layer.h"
#include "plain_driver.h"

/* The first tap inside of the input, and the one behind the last, on one axis. */
static inline void plain_taps(int32_t place, int32_t size, int32_t kernel, int32_t *from,
                              int32_t *to)
{
    *from = place < 0 ? -place : 0;
    *to = size - place < kernel ? size - place : kernel;
}

/*
 * A channel of a depthwise convolution: taps outside of the input add 0 to the sum of
 * (x - zero) * b.
 */
static inline void plain_channel(const net_layer *layer, const net_part *part, const int8_t *x,
                                 int8_t *y)
{
    const net_window *w = layer->window;
    const int32_t channels = w->channels, line = w->width * channels, zero = w->zero;
    int32_t first = 0, y0, y1, x0, x1; /* first: the sum of zero * b */
    for (int32_t n = 0; n < w->kernel_y * w->kernel_x; n++)
        first += zero * part->b[n];
    y += part->first_output;
    for (int32_t row = 0, top = -w->top; row < w->out_height; row++, top += w->stride_y) {
        plain_taps(top, w->height, w->kernel_y, &y0, &y1);
        for (int32_t n = 0, left = -w->left; n < w->out_width; n++, left += w->stride_x) {
            const int8_t *b = part->b + y0 * w->kernel_x;
            const int8_t *from = x + part->first_input + (top + y0) * line;
            int32_t sum = first;
            plain_taps(left, w->width, w->kernel_x, &x0, &x1);
            from += (left + x0) * channels;
            for (int32_t ky = y0; ky < y1; ky++, from += line, b += w->kernel_x) {
                const int8_t *at = from;
                for (int32_t kx = x0; kx < x1; kx++, at += channels)
                    sum += (*at - zero) * b[kx];
            }
            *y = plain_requantized(sum, part->columns);
            y += layer->outputs;
        }
    }
}

/* As net_compute(). */
static inline int plain_compute(weft_core *core, const net_layer *layer, const int8_t *x,
                                int8_t *y, int8_t *a, int8_t *results)
{
    const net_window *w = layer->window;
    if (layer->count == 1 || w->dilation_x != 1 || w->dilation_y != 1)
        return net_compute(core, layer, x, y, a, results);
    for (uint32_t n = 0; n < layer->count; n++)
        plain_channel(layer, &layer->parts[n], x, y);
    return WEFT_OK;
}

#endif
