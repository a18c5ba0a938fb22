/*
 * Classifies images of digits on the core, and prints the cycles of each layer and the digits.
 *
 * The network has fully connected layers in INT8. A layer is one product: its inputs [images, k]
 * times its weights [k, n], requantized to int8 by the core.
 */
#include "network.h" /* IMAGES, LAYERS, MAX_WIDTH, images, layers, expected; made by run.py */
#include "runtime.h"
#include "weft.h"

static weft_core core;
static int8_t buffers[2][IMAGES * MAX_WIDTH];

/* End the simulation with the error of the driver, as a positive number. */
static void check(int error)
{
    if (error != WEFT_OK)
        end((uint32_t)-error);
}

static void run_layer(const struct layer *layer, const int8_t *inputs, int8_t *outputs)
{
    const weft_product product = {
        .m = IMAGES, .n = layer->n, .k = layer->k,
        .a = inputs, .a_row_stride = layer->k, .a_k_stride = 1,
        /* The weights are stored as [n, k]: the strides transpose them. */
        .b = layer->weights, .b_k_stride = 1, .b_col_stride = layer->k,
        .c = outputs, .c_row_stride = layer->n,
        .epilogue = WEFT_REQUANTIZE, .columns = layer->columns,
    };
    const uint32_t start = cycles();

    check(weft_matmul(&core, &product));
    print(cycles() - start);
}

/* The index of the largest value. */
static uint32_t largest(const int8_t *values, int count)
{
    int best = 0;
    for (int n = 1; n < count; n++)
        if (values[n] > values[best])
            best = n;
    return (uint32_t)best;
}

int main(void)
{
    const int8_t *values = images;
    const int digits = layers[LAYERS - 1].n;

    check(weft_init(&core, CORE));
    for (int n = 0; n < LAYERS; n++) {
        run_layer(&layers[n], values, buffers[n % 2]);
        values = buffers[n % 2];
    }
    for (int n = 0; n < IMAGES; n++)
        print(largest(values + n * digits, digits));
    for (int n = 0; n < IMAGES * digits; n++)
        if (values[n] != expected[n])
            end(100); /* a result differs from the golden model */
    end(0);
    return 0;
}
