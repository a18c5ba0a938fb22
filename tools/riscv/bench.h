/* What the parts of the firmware know of each other. */
#ifndef BENCH_H
#define BENCH_H

#include "weft.h"

/* A square product, and its results as numpy and the golden model have them. */
struct operands {
    int size;
    const int8_t *a, *b;
    const int32_t *sums;
    const weft_column *columns;
    const int8_t *scaled;
};

void plain(int size, const int8_t *a, const int8_t *b, int32_t *c);
void plain_scaled(int size, const int32_t *sums, const weft_column *columns, int8_t *c);

#endif
