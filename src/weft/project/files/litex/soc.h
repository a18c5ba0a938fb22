/* What the programs have in common: console, timer, operands, and the product without the core. */
#ifndef SOC_H
#define SOC_H

#include <generated/csr.h>
#include <generated/mem.h>
#include <irq.h>
#include <libbase/uart.h>
#include <stdint.h>
#include <stdio.h>

#include "weft.h"

/* Start the console and the timer, which counts down from its largest value. */
static inline void soc_start(void)
{
    irq_setmask(0);
    irq_setie(1);
    uart_init();
    timer0_en_write(0);
    timer0_reload_write(0);
    timer0_load_write(0xFFFFFFFF);
    timer0_en_write(1);
}

/* The clock cycles since soc_start(). */
static inline uint32_t soc_cycles(void)
{
    timer0_update_value_write(1);
    return ~timer0_value_read();
}

/* The end of a program: simulate.py ends at the byte, which comes with the end of its line. */
static inline int soc_end(int is_right)
{
    printf("%c\n", is_right ? 4 : 21);
    uart_sync();
    return 0;
}

/* Write pseudo-random operands. */
static inline void soc_fill(int8_t *values, int count)
{
    static uint32_t state = 1;
    for (int n = 0; n < count; n++) {
        state = state * 1664525u + 1013904223u;
        values[n] = (int8_t)(state >> 24);
    }
}

/* C[m, n] = A[m, k] x B[k, n], computed by the processor alone. */
static inline void soc_product(int m, int n, int k, const int8_t *a, const int8_t *b, int32_t *c)
{
    for (int row = 0; row < m; row++)
        for (int col = 0; col < n; col++) {
            int32_t sum = 0;
            for (int i = 0; i < k; i++)
                sum += a[row * k + i] * b[i * n + col];
            c[row * n + col] = sum;
        }
}

#endif
