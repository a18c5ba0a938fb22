/* MEAN of int8 tensors over adjacent axes, as TFLite Micro computes it. */
#ifndef NET_MEAN_H
#define NET_MEAN_H

#include "net_arithmetic.h"

typedef struct net_reduction {
    uint32_t outer, count, inner; /* the input is [outer, count, inner], the output [outer, inner] */
    int32_t x_zero, zero, multiplier, shift;
} net_reduction;

static inline void net_mean(const net_reduction *r, const int8_t *x, int8_t *y)
{
    for (uint32_t outer = 0; outer < r->outer; outer++)
        for (uint32_t inner = 0; inner < r->inner; inner++) {
            const int8_t *first = x + outer * r->count * r->inner + inner;
            int32_t sum = net_strided_sum(first, r->count, r->inner);
            sum -= (int32_t)r->count * r->x_zero;
            sum = net_multiply(sum, r->multiplier, r->shift) + r->zero;
            *y++ = (int8_t)net_clamp(sum, INT8_MIN, INT8_MAX);
        }
}

#endif
