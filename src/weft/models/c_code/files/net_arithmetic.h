/* Fixed-point arithmetic of TFLite. Right shifts of negative numbers must be arithmetic. */
#ifndef NET_ARITHMETIC_H
#define NET_ARITHMETIC_H

#include <stdint.h>

static inline int32_t net_clamp(int32_t x, int32_t low, int32_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* The high half of 2 * a * b, rounded. */
static inline int32_t net_high_mul(int32_t a, int32_t b)
{
    const int64_t high = ((int64_t)a * b + (1 << 30)) >> 31;
    return high > INT32_MAX ? INT32_MAX : (int32_t)high;
}

/* x / 2^exponent for an exponent of 0 to 31, rounded to nearest, ties away from zero. */
static inline int32_t net_round_shift(int32_t x, int32_t exponent)
{
    const uint32_t mask = (1u << exponent) - 1;
    const uint32_t above = (mask >> 1) + (x < 0);
    return (x >> exponent) + (((uint32_t)x & mask) > above);
}

/* x * multiplier * 2^(shift - 31) for a shift of -31 to 31. */
static inline int32_t net_multiply(int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t shifted = (int32_t)((uint32_t)x << left);
    return net_round_shift(net_high_mul(shifted, multiplier), left - shift);
}

/* The sum of count values, stride apart. */
static inline int32_t net_strided_sum(const int8_t *x, uint32_t count, uint32_t stride)
{
    int32_t sum = 0;
    for (uint32_t n = 0; n < count; n++)
        sum += x[n * stride];
    return sum;
}

#endif
