/*
 * Two network cores, with a network each: both work at the same time, and the processor waits for
 * their interrupts. The kits and the C code have the prefixes `one` and `two`; only the first core
 * has a program memory. `make interop ARGS=cpu` runs this program on a RISC-V processor.
 *
 * Each core has a handler of its own: the first core may end before the second one is started, and
 * then two_digits_cnn_finish would return TWO_ERR_IDLE. If both cores share an interrupt, its
 * handler calls a function only if irq_status of that core is not 0.
 */
#include "one/net.h"
#include "two/net.h"
extern const int8_t input[];
extern int8_t outputs[2][ONE_DIGITS_CNN_OUTPUT_BYTES];
void wait_for_interrupt(void);      /* of your firmware: docs/networks.md tells what it must do */
static one_core first;
static two_core second;
static volatile int states[2];

void first_interrupt(void)          /* the handler of the first core's interrupt */
{
    if (states[0] == ONE_BUSY)
        states[0] = one_digits_cnn_finish(&first);
}

void second_interrupt(void)
{
    if (states[1] == TWO_BUSY)
        states[1] = two_digits_cnn_finish(&second);
}

int main(void)
{
    int error = one_init(&first, (void *)0x30000000);
    if (error == ONE_OK)
        error = two_init(&second, (void *)0x31000000);
    if (error == ONE_OK)
        error = one_program(&first, one_digits_cnn_program, ONE_DIGITS_CNN_PROGRAM_BYTES);
    if (error == ONE_OK)
        error = one_digits_cnn_load(&first);
    if (error == ONE_OK)
        error = two_digits_cnn_load(&second);
    if (error != ONE_OK)
        return error;
    one_irq_enable(&first, 1);
    two_irq_enable(&second, 1);
    states[0] = ONE_BUSY;
    states[1] = TWO_BUSY;
    error = one_digits_cnn_start(&first, input, outputs[0]);
    if (error == ONE_OK)
        error = two_digits_cnn_start(&second, input, outputs[1]);
    if (error != ONE_OK)
        return error;
    while (states[0] == ONE_BUSY || states[1] == TWO_BUSY)
        wait_for_interrupt();       /* or other work */
    return states[0] != ONE_OK ? states[0] : states[1];
}
