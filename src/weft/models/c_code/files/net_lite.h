/* ADD, MEAN and SOFTMAX of int8 tensors as LiteRT computes them, with its default kernels. */
#ifndef NET_LITE_H
#define NET_LITE_H

#include "net_arithmetic.h"

typedef struct net_products {
    uint32_t size;
    int32_t a_zero, a_multiplier, b_zero, b_multiplier, shift, zero, low, high;
} net_products;

typedef struct net_total {
    uint32_t outer, count, inner; /* the input is [outer, count, inner], the output [outer, inner] */
    float scale, offset;
} net_total;

/* A product that is rounded: no fused multiplication and addition. */
static inline float net_times(float a, float b)
{
    volatile float product = a * b;
    return product;
}

/* An integer between low and high, ties to even; the limits are below 2^22. */
static inline int32_t net_nearest(float x, float low, float high)
{
    volatile float y = (x < low ? low : x > high ? high : x) + 12582912.0f; /* 1.5 * 2^23 */
    return (int32_t)(y - 12582912.0f);
}

/* The sum of two products of integers, shifted; ties up. */
static inline void net_lite_add(const net_products *s, const int8_t *a, const int8_t *b, int8_t *y)
{
    for (uint32_t n = 0; n < s->size; n++) {
        const int32_t left = (a[n] - s->a_zero) * s->a_multiplier;
        const int32_t right = (b[n] - s->b_zero) * s->b_multiplier;
        const int64_t sum = (int64_t)left + right + ((int64_t)1 << s->shift >> 1);
        y[n] = (int8_t)net_clamp((int32_t)(sum >> s->shift) + s->zero, s->low, s->high);
    }
}

static inline void net_lite_mean(const net_total *t, const int8_t *x, int8_t *y)
{
    for (uint32_t outer = 0; outer < t->outer; outer++)
        for (uint32_t inner = 0; inner < t->inner; inner++) {
            const int8_t *first = x + outer * t->count * t->inner + inner;
            const int32_t sum = net_strided_sum(first, t->count, t->inner);
            *y++ = (int8_t)net_nearest(net_times((float)sum, t->scale) + t->offset, -128, 127);
        }
}

/* exponentials[255 + d] is exp(d * scale * beta) for d of -255 to 0; out is the scale of y. */
static inline void net_lite_softmax(const float exponentials[256], float out, uint32_t rows,
                                    uint32_t size, const int8_t *x, int8_t *y)
{
    for (uint32_t row = 0; row < rows; row++, x += size, y += size) {
        int32_t largest = INT8_MIN;
        volatile float sum = 0;
        float factor;
        for (uint32_t n = 0; n < size; n++)
            largest = x[n] > largest ? x[n] : largest;
        for (uint32_t n = 0; n < size; n++)
            sum += exponentials[255 + x[n] - largest];
        factor = 1.0f / net_times(sum, out);
        for (uint32_t n = 0; n < size; n++) {
            const float result = net_times(exponentials[255 + x[n] - largest], factor) + 0.5f;
            y[n] = (int8_t)(result < 255.0f ? (int32_t)result - 128 : 127);
        }
    }
}

#endif
