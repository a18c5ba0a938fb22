/* Runs a network on two cores with interrupts: examples/two_cores.c. */
#include "runtime.h"
#include "expected.h" /* image, expected; made by tools/cpu_networks.py */
#include "two/net.h"

enum { FIRST = 1 << 3, SECOND = 1 << 4 }; /* interrupts of the processor */

static uint32_t waits, handled;
static volatile uint32_t delay; /* cycles before the second core's start */

/* PicoRV32 clears a bit of the mask of interrupts: `maskirq a0, a0`. */
static void allow_interrupts(void)
{
    register uint32_t mask __asm__("a0") = ~(uint32_t)(FIRST | SECOND);
    __asm__ volatile(".word 0x0605050b" : "+r"(mask) : : "memory");
}

static void wait_for_interrupt(void)
{
    waits++;
    __asm__ volatile("" : : : "memory");
}

/* The first core may end before the second one starts. */
static int late_start(two_core *core, const int8_t *input, int8_t *output)
{
    const uint32_t start = cycles();
    while (cycles() - start < delay)
        continue;
    return two_digits_cnn_start(core, input, output);
}

#define main example
#define two_digits_cnn_start late_start
#define input image
#include "two_cores.c"
#undef two_digits_cnn_start
#undef input
#undef main

int8_t outputs[2][ONE_DIGITS_CNN_OUTPUT_BYTES];

/*
 * The processor comes here after an interrupt. It saves the registers that a function may change;
 * `retirq` returns, and allows interrupts again.
 */
__asm__(".section .text.interrupt,\"ax\",@progbits\n"
        "addi sp, sp, -64\n"
        "sw ra, 0(sp)\n sw t0, 4(sp)\n sw t1, 8(sp)\n sw t2, 12(sp)\n"
        "sw a0, 16(sp)\n sw a1, 20(sp)\n sw a2, 24(sp)\n sw a3, 28(sp)\n"
        "sw a4, 32(sp)\n sw a5, 36(sp)\n sw a6, 40(sp)\n sw a7, 44(sp)\n"
        "sw t3, 48(sp)\n sw t4, 52(sp)\n sw t5, 56(sp)\n sw t6, 60(sp)\n"
        ".word 0x0000850b\n" /* getq a0, q1: a bit for each interrupt that came */
        "call handle\n"
        "lw ra, 0(sp)\n lw t0, 4(sp)\n lw t1, 8(sp)\n lw t2, 12(sp)\n"
        "lw a0, 16(sp)\n lw a1, 20(sp)\n lw a2, 24(sp)\n lw a3, 28(sp)\n"
        "lw a4, 32(sp)\n lw a5, 36(sp)\n lw a6, 40(sp)\n lw a7, 44(sp)\n"
        "lw t3, 48(sp)\n lw t4, 52(sp)\n lw t5, 56(sp)\n lw t6, 60(sp)\n"
        "addi sp, sp, 64\n"
        ".word 0x0400000b\n"
        ".text\n");

__attribute__((used)) void handle(uint32_t came)
{
    handled++;
    if (came & FIRST)
        first_interrupt();
    if (came & SECOND)
        second_interrupt();
}

int main(void)
{
    uint32_t start;
    allow_interrupts();
    for (int run = 0; run < 2; run++) {
        for (int n = 0; n < ONE_DIGITS_CNN_OUTPUT_BYTES; n++)
            outputs[0][n] = outputs[1][n] = 0x55;
        waits = handled = 0;
        delay = run == 0 ? 0 : 30000;
        start = cycles();
        if (example() != ONE_OK)
            end(1);
        print(cycles() - start);
        for (int n = 0; n < ONE_DIGITS_CNN_OUTPUT_BYTES; n++)
            if (outputs[0][n] != expected[n] || outputs[1][n] != expected[n])
                end(2);
        if (handled < 2 || waits == 0)
            end(3);
    }
    if (one_digits_cnn_start(&first, image, outputs[0]) != ONE_OK)
        end(4);
    if (one_digits_cnn_start(&first, image, outputs[0]) != ONE_ERR_REFUSED)
        end(5);
    one_abort(&first);
    if (one_digits_cnn_finish(&first) != ONE_ERR_ABORTED)
        end(6);
    print(handled);
    end(0);
    return 0;
}
