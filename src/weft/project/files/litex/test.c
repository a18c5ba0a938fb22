/* Tests of the core in the SoC: products of several shapes, and errors: make sim. */
#include "soc.h"

#define SIZE 16

static weft_core core;
static int8_t a[SIZE * SIZE], b[SIZE * SIZE];
static int32_t c[SIZE * SIZE], expected[SIZE * SIZE];
static int failed;

static void check(int is_right, const char *what, int number)
{
    printf("%s %d: %s\n", what, number, is_right ? "passed" : "FAILED");
    failed += !is_right;
}

/* The core computes what the processor computes. */
static void test_products(void)
{
    static const struct { int m, k, n; } shapes[] = {{1, 1, 1}, {5, 9, 7}, {8, 16, 8}};
    for (int i = 0; i < 3; i++) {
        int m = shapes[i].m, k = shapes[i].k, n = shapes[i].n, wrong = 0;
        soc_fill(a, m * k);
        soc_fill(b, k * n);
        int error = weft_matmul_int8(&core, m, n, k, a, b, c);
        soc_product(m, n, k, a, b, expected);
        for (int at = 0; at < m * n; at++)
            wrong += c[at] != expected[at];
        check(error == WEFT_OK && !wrong, "product", i + 1);
    }
}

int main(void)
{
    soc_start();
    check(weft_init(&core, (void *)WEFT_BASE) == WEFT_OK, "core", 1);
    test_products();
    check(weft_matmul_int8(&core, 0, 1, 1, a, b, c) == WEFT_ERR_SHAPE, "refused shape", 1);
    check(weft_matmul_int8(&core, 1, 1, 1, 0, b, c) == WEFT_ERR_NULL, "refused pointer", 1);
    printf("%d of 6 tests failed\n", failed);
    return soc_end(!failed);
}
