/* Runs a network on a network core: loads it into memory, checks two inferences, prints the
 * cycles of the load and of the second inference, and those of the core in it. */
#include "expected.h" /* image, expected, names; made by tools/cpu_networks.py */
#include "net.h"
#include "runtime.h"

static weft_core core;
static int8_t output[OF_NETWORK(OUTPUT_BYTES)];

int main(void)
{
    uint32_t start, stop;
    int state;

    if (weft_init(&core, CORE) != WEFT_OK)
        end(1);
    if (weft_program(&core, PROGRAM, OF_NETWORK(PROGRAM_BYTES)) != WEFT_OK)
        end(2);
    start = cycles();
    state = NETWORK_LOAD(&core);
    stop = cycles();
    if (state != WEFT_OK)
        end(3);
    print(stop - start);
    for (int run = 0; run < 2; run++) {
        for (int n = 0; n < OF_NETWORK(OUTPUT_BYTES); n++)
            output[n] = 0x55;
        start = cycles();
        state = NETWORK_RUN(&core, image, output);
        stop = cycles();
        if (state != WEFT_OK)
            end(4);
        for (int n = 0; n < OF_NETWORK(OUTPUT_BYTES); n++)
            if (output[n] != expected[n])
                end(5);
    }
    print(stop - start);
    print(WEFT_REGISTER(&core, net_cycles));
    end(0);
    return 0;
}
