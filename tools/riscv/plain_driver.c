/*
 * The driver's products in plain C, for the C code of a network: the processor computes what a core
 * would. Blocks of 2 x 4 sums stay in registers, the fastest size on a PicoRV32.
 */
#include "plain_driver.h"

static void store(const weft_product *p, uint32_t row, uint32_t n, int32_t sum)
{
    ((int8_t *)p->c)[(ptrdiff_t)row * p->c_row_stride + (ptrdiff_t)n]
        = plain_requantized(sum, &p->columns[n]);
}

/* Two rows and four columns, or one column; the second row may be the first one again. */
static void block(const weft_product *p, uint32_t row, uint32_t second, uint32_t n, uint32_t width)
{
    const int8_t *x = (const int8_t *)p->a + (ptrdiff_t)row * p->a_row_stride;
    const int8_t *z = (const int8_t *)p->a + (ptrdiff_t)second * p->a_row_stride;
    const int8_t *b0 = (const int8_t *)p->b + (ptrdiff_t)n * p->b_col_stride;
    int32_t s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
    if (width == 4) {
        const int8_t *b1 = b0 + p->b_col_stride, *b2 = b1 + p->b_col_stride;
        const int8_t *b3 = b2 + p->b_col_stride;
        for (uint32_t k = 0; k < p->k; k++) {
            const int32_t v = x[k], w = z[k];
            s00 += v * b0[k], s01 += v * b1[k], s02 += v * b2[k], s03 += v * b3[k];
            s10 += w * b0[k], s11 += w * b1[k], s12 += w * b2[k], s13 += w * b3[k];
        }
        store(p, row, n + 1, s01), store(p, row, n + 2, s02), store(p, row, n + 3, s03);
        if (second != row) {
            store(p, second, n + 1, s11), store(p, second, n + 2, s12);
            store(p, second, n + 3, s13);
        }
    } else
        for (uint32_t k = 0; k < p->k; k++)
            s00 += x[k] * b0[k], s10 += z[k] * b0[k];
    store(p, row, n, s00);
    if (second != row)
        store(p, second, n, s10);
}

/* The values of a row of A and of a column of B must be adjacent, as in the C code of a network. */
int weft_matmul(weft_core *core, const weft_product *p)
{
    (void)core;
    if (p->epilogue != WEFT_REQUANTIZE)
        return WEFT_ERR_EPILOGUE;
    if (p->a_k_stride != 1 || p->b_k_stride != 1)
        return WEFT_ERR_STRIDE;
    for (uint32_t n = 0, width; n < p->n; n += width) {
        width = p->n - n >= 4 ? 4 : 1;
        for (uint32_t row = 0; row < p->m; row += 2)
            block(p, row, row + 1 < p->m ? row + 1 : row, n, width);
    }
    return WEFT_OK;
}

/* Nothing keeps B. */
int weft_load_b(weft_core *core, weft_weights *weights, const void *b, ptrdiff_t b_k_stride,
                ptrdiff_t b_col_stride, uint32_t n, uint32_t k)
{
    (void)core, (void)weights, (void)b, (void)b_k_stride, (void)b_col_stride, (void)n, (void)k;
    return WEFT_ERR_NO_SPACE;
}

int weft_free_b(weft_core *core, const weft_weights *weights)
{
    (void)core, (void)weights;
    return WEFT_OK;
}
