/* Runs a network with the C code of `weft compile --c`, checks its output, prints the cycles. */
#include "expected.h" /* image, expected; made by tools/cpu.py */
#include "net.h"
#include "runtime.h"

static weft_core core;
static int8_t output[DIGITS_CNN_OUTPUT_BYTES];
#if !WEFT_FIFO
static uint8_t buffer[DIGITS_CNN_BUFFER_BYTES] __attribute__((aligned(64)));
#endif

int main(void)
{
    uint32_t start, stop;
    int state;

    if (weft_init(&core, CORE) != WEFT_OK)
        end(1);
#if !WEFT_FIFO
    core.buffer = buffer;
    core.buffer_bytes = sizeof buffer;
#endif
    start = cycles();
    state = digits_cnn_run(&core, image, output);
    stop = cycles();
    if (state != WEFT_OK)
        end(2);
    for (int n = 0; n < DIGITS_CNN_OUTPUT_BYTES; n++)
        if (output[n] != expected[n])
            end(3);
    print(stop - start);
    end(0);
    return 0;
}
