/* Declarations that the files of the firmware share. */
#ifndef FIRMWARE_H
#define FIRMWARE_H

#include "weft.h"

/* A square product with its expected results, from numpy and the golden model. */
struct operands {
    int size;                   /* M = N = K */
    const int8_t *a, *b;
    const int32_t *sums;        /* expected sums */
    const weft_column *columns; /* requantization of each column */
    const int8_t *scaled;       /* expected results after requantization */
};

void plain_matmul(int size, const int8_t *a, const int8_t *b, int32_t *c);
void plain_requantize(int size, const int32_t *sums, const weft_column *columns, int8_t *c);

#endif
