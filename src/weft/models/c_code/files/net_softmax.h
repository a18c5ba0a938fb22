/* SOFTMAX of int8 rows, as TFLite Micro computes it. */
#ifndef NET_SOFTMAX_H
#define NET_SOFTMAX_H

#include "net_arithmetic.h"

/* 1 / (1 + a) for 0 <= a < 1, both with 31 fractional bits: three Newton steps. */
static inline int32_t net_reciprocal(int32_t a)
{
    const int32_t half = (int32_t)(((int64_t)a + INT32_MAX + 1) >> 1);
    int64_t x = 1515870810 + (int64_t)net_high_mul(half, -1010580540);
    for (int n = 0; n < 3; n++) {
        const int32_t error = (1 << 29) - net_high_mul(half, (int32_t)x);
        int64_t step = (int64_t)net_high_mul((int32_t)x, error) * 4;
        step = step > INT32_MAX ? INT32_MAX : step < INT32_MIN ? INT32_MIN : step;
        x += step;
    }
    x *= 2;
    return x > INT32_MAX ? INT32_MAX : (int32_t)x;
}

/* exponentials[255 + d] is exp(d * scale * beta) for d of -255 to 0, with 31 fractional bits. */
static inline void net_softmax(const int32_t exponentials[256], uint32_t rows, uint32_t size,
                               const int8_t *x, int8_t *y)
{
    for (uint32_t row = 0; row < rows; row++, x += size, y += size) {
        int32_t largest = INT8_MIN, zeros = 0, scale, shift;
        uint32_t sum = 0;
        for (uint32_t n = 0; n < size; n++)
            largest = x[n] > largest ? x[n] : largest;
        for (uint32_t n = 0; n < size; n++)
            sum += (uint32_t)net_round_shift(exponentials[255 + x[n] - largest], 12);
        while (!(sum & 0x80000000u)) { /* the sum is at least 2^19: one of the terms is 1 */
            sum <<= 1;
            zeros++;
        }
        scale = net_reciprocal((int32_t)(sum & 0x7FFFFFFFu));
        shift = 12 - zeros + 31 - 8;
        for (uint32_t n = 0; n < size; n++) {
            const int32_t product = net_high_mul(scale, exponentials[255 + x[n] - largest]);
            const int32_t result = shift > 31 ? 0 : net_round_shift(product, shift);
            y[n] = (int8_t)net_clamp(result + INT8_MIN, INT8_MIN, INT8_MAX);
        }
    }
}

#endif
