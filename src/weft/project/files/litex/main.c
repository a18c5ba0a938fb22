/* A program: it multiplies matrices on the core and without it, and counts the cycles: make run. */
#include "soc.h"

#define M 20
#define K 30
#define N 10

static weft_core core;
static int8_t a[M * K], b[K * N];
static int32_t c[M * N], expected[M * N];

int main(void)
{
    soc_start();
    soc_fill(a, M * K);
    soc_fill(b, K * N);
    int error = weft_init(&core, (void *)WEFT_BASE);
    uint32_t start = soc_cycles();
    if (error == WEFT_OK)
        error = weft_matmul_int8(&core, M, N, K, a, b, c);
    uint32_t with_core = soc_cycles() - start;
    if (error != WEFT_OK) {
        printf("error %d of the driver: see core/driver/weft.h\n", error);
        return soc_end(0);
    }
    start = soc_cycles();
    soc_product(M, N, K, a, b, expected);
    uint32_t without = soc_cycles() - start;
    int wrong = 0;
    for (int i = 0; i < M * N; i++)
        wrong += c[i] != expected[i];
    printf("%d x %d x %d: %lu cycles with the core, %lu without, %s\n", M, K, N,
           (unsigned long)with_core, (unsigned long)without, wrong ? "DIFFERENT" : "equal");
    return soc_end(!wrong);
}
