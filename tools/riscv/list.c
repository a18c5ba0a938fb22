/* Runs a network on a core for networks: loads it into memory, checks two inferences, prints the
 * cycles of the load and of the second inference. */
#include "expected.h" /* image, expected; made by tools/cpu.py */
#include "net.h"
#include "runtime.h"

static weft_core core;
static uint8_t program[DIGITS_CNN_PROGRAM_BYTES] __attribute__((aligned(64)));
static int8_t output[DIGITS_CNN_OUTPUT_BYTES];

int main(void)
{
    uint32_t start, stop;
    int state;

    if (weft_init(&core, CORE) != WEFT_OK)
        end(1);
    if (weft_program(&core, program, sizeof program) != WEFT_OK)
        end(2);
    start = cycles();
    state = digits_cnn_load(&core);
    stop = cycles();
    if (state != WEFT_OK)
        end(3);
    print(stop - start);
    for (int run = 0; run < 2; run++) {
        for (int n = 0; n < DIGITS_CNN_OUTPUT_BYTES; n++)
            output[n] = 0x55;
        start = cycles();
        state = digits_cnn_run(&core, image, output);
        stop = cycles();
        if (state != WEFT_OK)
            end(4);
        for (int n = 0; n < DIGITS_CNN_OUTPUT_BYTES; n++)
            if (output[n] != expected[n])
                end(5);
    }
    print(stop - start);
    end(0);
    return 0;
}
