/* Products in plain C. Blocks of 2 x 4 sums stay in registers, the fastest size on a PicoRV32. */
#include "firmware.h"

void plain_matmul(int size, const int8_t *restrict a, const int8_t *restrict b, int32_t *restrict c)
{
    for (int i = 0; i < size; i += 2)
        for (int j = 0; j < size; j += 4) {
            int32_t s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
            const int8_t *x = a + i * size, *y = b + j;
            for (int k = 0; k < size; k++, x++, y += size) {
                int32_t b0 = y[0], b1 = y[1], b2 = y[2], b3 = y[3], v = x[0];
                s00 += v * b0, s01 += v * b1, s02 += v * b2, s03 += v * b3;
                v = x[size];
                s10 += v * b0, s11 += v * b1, s12 += v * b2, s13 += v * b3;
            }
            int32_t *z = c + i * size + j;
            z[0] = s00, z[1] = s01, z[2] = s02, z[3] = s03;
            z += size;
            z[0] = s10, z[1] = s11, z[2] = s12, z[3] = s13;
        }
}

/* Mode tflite: rounding doubling high multiplication, then rounding division by 2^-shift. */
void plain_requantize(int size, const int32_t *restrict sums, const weft_column *restrict columns,
                      int8_t *restrict c)
{
    for (int j = 0; j < size; j++) {
        const weft_column column = columns[j];
        const int shift = -column.shift; /* 1 or more */
        const int32_t mask = (int32_t)((1u << shift) - 1);
        for (int i = 0; i < size; i++) {
            int64_t product = (int64_t)(sums[i * size + j] + column.bias) * column.multiplier;
            int32_t high = (int32_t)((product + (1 << 30)) >> 31), rest = high & mask;
            int32_t y = (high >> shift) + (rest > (mask >> 1) + (high < 0)) + column.zero;
            y = y < column.low ? column.low : y > column.high ? column.high : y;
            c[i * size + j] = (int8_t)y;
        }
    }
}
