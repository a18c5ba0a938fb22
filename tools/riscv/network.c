/* Runs a network with the C code of `weft compile --c`, checks its output, prints the cycles.
 * With the macro PLAIN the products are computed by plain_driver.c. */
#include "expected.h" /* image, expected, names; made by tools/cpu_networks.py */
#include "net.h"
#include "runtime.h"

static weft_core core;
static int8_t output[OF_NETWORK(OUTPUT_BYTES)];
#if !WEFT_FIFO
static uint8_t buffer[OF_NETWORK(BUFFER_BYTES)] __attribute__((aligned(64)));
#endif

int main(void)
{
    uint32_t start, stop;
    int state;

#ifndef PLAIN
    if (weft_init(&core, CORE) != WEFT_OK)
        end(1);
#endif
#if !WEFT_FIFO
    core.buffer = buffer;
    core.buffer_bytes = sizeof buffer;
#endif
    start = cycles();
    state = NETWORK_RUN(&core, image, output);
    stop = cycles();
    if (state != WEFT_OK)
        end(2);
    for (int n = 0; n < OF_NETWORK(OUTPUT_BYTES); n++)
        if (output[n] != expected[n])
            end(3);
    print(stop - start);
    end(0);
    return 0;
}
