/* ADD of two int8 tensors with scales of their own, as TFLite Micro computes it. */
#ifndef NET_ADD_H
#define NET_ADD_H

#include "net_arithmetic.h"

typedef struct net_sum {
    uint32_t size;
    int32_t a_zero, a_multiplier, a_shift, b_zero, b_multiplier, b_shift, left_shift;
    int32_t multiplier, shift, zero, low, high; /* of the result */
} net_sum;

static inline void net_add(const net_sum *s, const int8_t *a, const int8_t *b, int8_t *y)
{
    const int32_t step = 1 << s->left_shift;
    for (uint32_t n = 0; n < s->size; n++) {
        const int32_t left = net_multiply((a[n] - s->a_zero) * step, s->a_multiplier, s->a_shift);
        const int32_t right = net_multiply((b[n] - s->b_zero) * step, s->b_multiplier, s->b_shift);
        const int32_t sum = net_multiply(left + right, s->multiplier, s->shift) + s->zero;
        y[n] = (int8_t)net_clamp(sum, s->low, s->high);
    }
}

#endif
