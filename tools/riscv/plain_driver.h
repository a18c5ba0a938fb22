/* Requantization in plain C. */
#ifndef PLAIN_DRIVER_H
#define PLAIN_DRIVER_H

#include "weft.h"

/* Mode tflite: rounding doubling high multiplication, then rounding division by 2^right. */
static inline int8_t plain_requantized(int32_t sum, const weft_column *column)
{
    const int left = column->shift > 0 ? column->shift : 0, right = left - column->shift;
    const int32_t mask = (int32_t)((1u << right) - 1);
    const int32_t value = (int32_t)((uint32_t)(sum + column->bias) << left);
    const int64_t product = (int64_t)value * (int32_t)column->multiplier;
    const int32_t high = (int32_t)((product + (1 << 30)) >> 31), rest = high & mask;
    const int32_t y = (high >> right) + (rest > (mask >> 1) + (high < 0)) + column->zero;
    return (int8_t)(y < column->low ? column->low : y > column->high ? column->high : y);
}

#endif
