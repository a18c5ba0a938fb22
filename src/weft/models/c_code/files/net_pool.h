/* AVERAGE_POOL_2D and MAX_POOL_2D of int8 maps, as TFLite Micro computes them. */
#ifndef NET_POOL_H
#define NET_POOL_H

#include "net_arithmetic.h"

typedef struct net_pool {
    int32_t batch, height, width, channels; /* of the input */
    int32_t kernel_y, kernel_x, stride_y, stride_x, top, left;
    int32_t out_height, out_width, low, high;
} net_pool;

/* One result: inputs from row y0 to y1 and from column x0 to x1, both ends excluded. */
static inline int32_t net_pooled(const net_pool *p, const int8_t *map, int32_t y0, int32_t y1,
                                 int32_t x0, int32_t x1, int is_average)
{
    const int32_t count = (y1 - y0) * (x1 - x0);
    int32_t sum = 0, largest = INT8_MIN;
    for (int32_t y = y0; y < y1; y++)
        for (int32_t x = x0; x < x1; x++) {
            const int32_t value = map[(y * p->width + x) * p->channels];
            sum += value;
            largest = value > largest ? value : largest;
        }
    return !is_average ? largest : (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

static inline void net_pool_map(const net_pool *p, const int8_t *x, int8_t *y, int is_average)
{
    for (int32_t line = 0; line < p->batch * p->out_height; line++)
        for (int32_t column = 0; column < p->out_width; column++) {
            const int8_t *map = x + line / p->out_height * p->height * p->width * p->channels;
            const int32_t top = line % p->out_height * p->stride_y - p->top;
            const int32_t left = column * p->stride_x - p->left;
            const int32_t y0 = top < 0 ? 0 : top, x0 = left < 0 ? 0 : left;
            const int32_t y1 = net_clamp(top + p->kernel_y, 0, p->height);
            const int32_t x1 = net_clamp(left + p->kernel_x, 0, p->width);
            for (int32_t c = 0; c < p->channels; c++) {
                const int32_t result = net_pooled(p, map + c, y0, y1, x0, x1, is_average);
                *y++ = (int8_t)net_clamp(result, p->low, p->high);
            }
        }
}

#endif
