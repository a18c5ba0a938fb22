/*
 * Runs a network on the core, checks its output, and prints the cycles of each layer.
 *
 * network_files.py writes network.h: the names of the network's functions, an input, the expected
 * output, and the place of each layer in the log of the core.
 */
#include <generated/mem.h>
#include "network.h"
#include "runtime.h"
#include "weft.h"

static weft_core core;
static int8_t output[OUTPUT_BYTES];

/* Print an error of the driver, and the layer in which it ended a list. Returns 0 for WEFT_OK. */
static int failed(const char *step, int error)
{
    uint32_t job;
    char text[200];
    if (error == WEFT_OK)
        return 0;
    print(step);
    print(": ");
    print(weft_failure_text(&core, error, text, sizeof text));
    if (error == WEFT_ERR_BUS || error == WEFT_ERR_NO_ANSWER || error == WEFT_ERR_ADDRESS) {
        job = weft_jobs(&core); /* of the list: the number of the failed one */
        for (int n = 0; n < LAYERS; n++)
            if (job <= layers[n].last_job) {
                print(", in layer ");
                print(layers[n].name);
                break;
            }
    }
    print("\n");
    return 1;
}

static void print_line(uint32_t count, uint32_t predicted, const char *what)
{
    print_number(count, 11);
    if (predicted)
        print_number(predicted, 11);
    else
        print("           ");
    print("  ");
    print(what);
    print("\n");
}

/* Print the cycles from the end of each layer to the end of the next one, as the core logged them. */
static int print_layers(void)
{
    uint32_t times[2], before = 0; /* start and end of a job, in cycles since the start of the list */
    for (int n = 0; n < LAYERS; n++) {
        uint32_t vector = LOG + layers[n].last_job * ENTRY_VECTORS;
        if (failed("log", weft_program_read(&core, vector, times, sizeof times)))
            return 1;
        print_line(times[1] - before, layers[n].predicted, layers[n].name);
        before = times[1];
    }
    return 0;
}

/* Run one inference and compare its output; its cycles, or 0 if it failed. */
static uint32_t infer(void)
{
    uint32_t start, stop;
    for (int n = 0; n < OUTPUT_BYTES; n++)
        output[n] = 0x55;
    start = cycles();
    if (failed("run", network_run(&core, input, output)))
        return 0;
    stop = cycles();
    for (int n = 0; n < OUTPUT_BYTES; n++)
        if (output[n] != expected[n]) {
            print("wrong output byte ");
            print_number((uint32_t)n, 0);
            print("\n");
            return 0;
        }
    return stop - start;
}

/* Load the network and run it twice; the exit code. */
static int run(void)
{
    uint32_t start, load, inference;
    if (failed("weft_init", weft_init(&core, (void *)WEFT_BASE)))
        return 1;
    if (failed("weft_program", weft_program(&core, network_program, PROGRAM_BYTES)))
        return 1;
    start = cycles();
    if (failed("load", network_load(&core)))
        return 1;
    load = cycles() - start;
    if (!infer())
        return 1;
    inference = infer(); /* the caches have the program now */
    if (!inference)
        return 1;
    print("     cycles  predicted\n");
    if (print_layers())
        return 1;
    print_line(WEFT_REGISTER(&core, net_cycles), PREDICTED, "all layers, on the core");
    print_line(inference, 0, "an inference, with the processor");
    print_line(load, 0, "the load, once");
    return 0;
}

int main(void)
{
    start_timer();
    print("\nWeft: " NETWORK "\n");
    print(run() ? "FAILED\n" : "All output bytes are right.\n");
    finish();
    return 0;
}
