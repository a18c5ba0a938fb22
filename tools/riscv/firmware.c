/* Times plain C and the driver, checks every result, and prints the cycles for each size. */
#include "firmware.h"
#include "operands.h" /* SIZES, MAX_SIZE, struct operands all[]; made by tools/cpu.py */
#include "runtime.h"

static weft_core core;
static int32_t sums[MAX_SIZE * MAX_SIZE];
static int8_t scaled[MAX_SIZE * MAX_SIZE];
#if !WEFT_FIFO
static uint8_t buffer[64 * MAX_SIZE] __attribute__((aligned(64)));
#endif

/* End the run with the number of the check if it fails. */
static void check(int passed, uint32_t number)
{
    if (!passed)
        end(number);
}

static void clear(void)
{
    for (int n = 0; n < MAX_SIZE * MAX_SIZE; n++) {
        sums[n] = 0x55555555;
        scaled[n] = 0x55;
    }
}

/* Print the cycles of a product, and compare its results with the expected ones. */
static void report(uint32_t start, uint32_t stop, const struct operands *o, int has_sums,
                   uint32_t number)
{
    print(stop - start);
    for (int n = 0; n < o->size * o->size; n++)
        check(has_sums ? sums[n] == o->sums[n] : scaled[n] == o->scaled[n], number);
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

    print(n);
    start = cycles();
    plain_matmul(o->size, o->a, o->b, sums);
    stop = cycles();
    report(start, stop, o, 1, 1);

    start = cycles();
    state = weft_matmul(&core, &p);
    stop = cycles();
    check(state == WEFT_OK, 2);
    report(start, stop, o, 1, 3);

    state = weft_load_b(&core, &weights, o->b, o->size, 1, n, n);
    if (state == WEFT_OK) {
        p.weights = &weights;
        start = cycles();
        state = weft_matmul(&core, &p);
        stop = cycles();
        check(state == WEFT_OK, 4);
        report(start, stop, o, 1, 5);
        check(weft_free_b(&core, &weights) == WEFT_OK, 6);
        p.weights = NULL;
    } else { /* B does not fit the core's buffer */
        check(state == WEFT_ERR_NO_SPACE, 7);
        print(0);
    }

    start = cycles();
    plain_matmul(o->size, o->a, o->b, sums);
    plain_requantize(o->size, sums, o->columns, scaled);
    stop = cycles();
    report(start, stop, o, 0, 8);

    p.c = scaled;
    p.c_row_stride = o->size;
    p.epilogue = WEFT_REQUANTIZE;
    p.columns = o->columns;
    start = cycles();
    state = weft_matmul(&core, &p);
    stop = cycles();
    check(state == WEFT_OK, 9);
    report(start, stop, o, 0, 10);
}

int main(void)
{
    check(weft_init(&core, CORE) == WEFT_OK, 11);
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
