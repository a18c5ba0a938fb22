/* Times plain C and the driver, checks each result, and prints a row of cycles for each size. */
#include "bench.h"
#include "operands.h" /* SIZES, MOST and struct operands all[] */

#define CONSOLE ((volatile uint32_t *)0x10000000)
#define CORE ((void *)0x30000000)

__asm__(".section .text.start,\"ax\",@progbits\n"
        ".global _start\n"
        "_start: call main\n"
        ".text\n");

static weft_core core;
static int32_t sums[MOST * MOST];
static int8_t scaled[MOST * MOST];
#if !WEFT_FIFO
static uint8_t buffer[64 * MOST] __attribute__((aligned(64)));
#endif

/* The compiler may call them; no library is linked. */
void *memcpy(void *to, const void *from, size_t bytes)
{
    for (size_t n = 0; n < bytes; n++)
        ((char *)to)[n] = ((const char *)from)[n];
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    for (size_t n = 0; n < bytes; n++)
        ((char *)to)[n] = (char)value;
    return to;
}

static uint32_t cycles(void)
{
    uint32_t now;
    __asm__ volatile("rdcycle %0" : "=r"(now) : : "memory");
    return now;
}

static void end(uint32_t status)
{
    CONSOLE[1] = status;
    for (;;)
        ;
}

/* What is not right ends the run, with the number of the check. */
static void must(int right, uint32_t check)
{
    if (!right)
        end(check);
}

static void clear(void)
{
    for (int n = 0; n < MOST * MOST; n++) {
        sums[n] = 0x55555555;
        scaled[n] = 0x55;
    }
}

static void print_time(uint32_t start, uint32_t stop, const struct operands *o, int of_sums,
                       uint32_t check)
{
    CONSOLE[0] = stop - start;
    for (int n = 0; n < o->size * o->size; n++)
        must(of_sums ? sums[n] == o->sums[n] : scaled[n] == o->scaled[n], check);
    clear();
}

static void run(const struct operands *o)
{
    const uint32_t n = (uint32_t)o->size;
    weft_weights weights;
    weft_product p = {
        .m = n, .n = n, .k = n, .a = o->a, .a_row_stride = o->size, .a_k_stride = 1, .b = o->b,
        .b_k_stride = o->size, .b_col_stride = 1, .c = sums, .c_row_stride = 4 * o->size,
    };
    uint32_t start, stop;
    int state;

    CONSOLE[0] = n;
    start = cycles();
    plain(o->size, o->a, o->b, sums);
    stop = cycles();
    print_time(start, stop, o, 1, 1);

    start = cycles();
    state = weft_matmul(&core, &p);
    stop = cycles();
    must(state == WEFT_OK, 2);
    print_time(start, stop, o, 1, 3);

    state = weft_load_b(&core, &weights, o->b, o->size, 1, n, n);
    if (state == WEFT_OK) {
        p.weights = &weights;
        start = cycles();
        state = weft_matmul(&core, &p);
        stop = cycles();
        must(state == WEFT_OK, 4);
        print_time(start, stop, o, 1, 5);
        must(weft_free_b(&core, &weights) == WEFT_OK, 6);
        p.weights = NULL;
    } else { /* the buffers are smaller than B */
        must(state == WEFT_ERR_NO_SPACE, 7);
        CONSOLE[0] = 0;
    }

    start = cycles();
    plain(o->size, o->a, o->b, sums);
    plain_scaled(o->size, sums, o->columns, scaled);
    stop = cycles();
    print_time(start, stop, o, 0, 8);

    p.c = scaled;
    p.c_row_stride = o->size;
    p.epilogue = WEFT_REQUANTIZE;
    p.columns = o->columns;
    start = cycles();
    state = weft_matmul(&core, &p);
    stop = cycles();
    must(state == WEFT_OK, 9);
    print_time(start, stop, o, 0, 10);
}

int main(void)
{
    must(weft_init(&core, CORE) == WEFT_OK, 11);
#if !WEFT_FIFO
    core.buffer = buffer;
    core.buffer_bytes = sizeof buffer;
#endif
    clear();
    for (int n = 0; n < SIZES; n++)
        run(&all[n]);
    end(0);
    return 0;
}
