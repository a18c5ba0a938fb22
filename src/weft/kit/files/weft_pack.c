/* Panels and headers as the core takes them, results as it gives them. */
#include "weft_words.h"

uint32_t weft_panel_pages(uint32_t k)
{
    const weft_geometry *a = &weft_regions[WEFT_A];
    return weft_ceil(weft_ceil(k, a->depth), a->page);
}

/* Of one panel on the stream. */
size_t weft_panel_bytes(unsigned region, uint32_t words)
{
    const weft_geometry *g = &weft_regions[region];
    return (size_t)weft_ceil(words, g->group) * g->segments * WEFT_BYTES_IN;
}

/* Results of a row of a tile are padded to whole chunks. */
static uint32_t slots(uint32_t width)
{
    return weft_ceil(width, WEFT_LANES) * WEFT_LANES;
}

static size_t result_slots(uint32_t m, uint32_t n)
{
    return m * ((size_t)(n / WEFT_COLS) * slots(WEFT_COLS) + slots(n % WEFT_COLS));
}

/* Of one job on the stream. */
size_t weft_result_bytes(uint32_t m, uint32_t n, unsigned size)
{
    size_t all = result_slots(m, n) * size;
    return (all + WEFT_BYTES_OUT - 1) / WEFT_BYTES_OUT * WEFT_BYTES_OUT;
}

void weft_load_header(uint32_t words[8], unsigned region, unsigned flags, uint32_t page,
                      uint32_t pitch, uint32_t panels, uint32_t panel_words)
{
    words[0] = 2u | WEFT_COMMANDS_VERSION << 8 | region << 16 | flags << 24;
    words[1] = page | pitch << 16;
    words[2] = panels;
    words[3] = panel_words;
    words[4] = pitch * panels;
    words[5] = words[6] = words[7] = 0;
}

#if !WEFT_DMA
static inline void put_header(weft_core *core, const uint32_t words[8])
{
    weft_out out = weft_open(core);
    unsigned n, byte;
    if (weft_claim(&out, 32 / WEFT_PIECE))
        for (n = 0; n < 8; n++)
            for (byte = 0; byte < 4; byte += WEFT_PIECE)
                weft_put(&out, words[n] >> 8 * byte);
    weft_put_zeros(&out, WEFT_BYTES_IN > 32 ? 8 : 0); /* of 64 bytes */
    weft_close(&out);
}

void weft_put_header(weft_core *core, const uint32_t words[8])
{
    put_header(core, words);
}

void weft_put_load(weft_core *core, unsigned region, uint32_t page, uint32_t pitch,
                   uint32_t panels, uint32_t panel_words)
{
    uint32_t words[8];
    weft_load_header(words, region, 0, page, pitch, panels, panel_words);
    put_header(core, words);
}
#endif

/* Bytes as they lie, then zeros up to `total`. */
static void put_bytes(weft_out *out, const void *data, size_t bytes, size_t total)
{
    const unsigned char *place = data;
    size_t n;
    unsigned byte;
    for (n = 0; n < bytes; n += WEFT_PIECE, place += WEFT_PIECE) {
        uint32_t piece = 0;
        for (byte = 0; byte < WEFT_PIECE; byte++)
            piece |= (uint32_t)place[byte] << 8 * byte;
        weft_put_one(out, piece);
    }
    weft_put_zeros(out, (uint32_t)(total - bytes) / WEFT_PIECE);
}

/* What finishes the columns of `count` panels of B. */
void weft_put_columns(weft_core *core, const weft_column *columns, uint32_t n, uint32_t count)
{
    size_t total = weft_panel_bytes(WEFT_PARAMETERS, weft_ceil(WEFT_COLS, WEFT_LANES));
    weft_out out = weft_open(core);
    for (; count--; columns += WEFT_COLS, n -= WEFT_COLS)
        put_bytes(&out, columns, weft_least(n, WEFT_COLS) * sizeof *columns, total);
    weft_close(&out);
}

/* Sums to start from, of `count` panels of B. */
void weft_put_bias(weft_core *core, const float *bias, uint32_t n, uint32_t count)
{
    size_t total = weft_panel_bytes(WEFT_C, 1);
    weft_out out = weft_open(core);
    for (; count--; bias += WEFT_COLS, n -= WEFT_COLS)
        put_bytes(&out, bias, weft_least(n, WEFT_COLS) * sizeof *bias, total);
    weft_close(&out);
}

void weft_put_table(weft_core *core, const uint8_t table[256])
{
    const weft_geometry *g = &weft_regions[WEFT_TABLE_ENTRIES];
    weft_out out = weft_open(core);
    uint32_t n;
    for (n = 0; n < 256; n += g->group)
        put_bytes(&out, table + n, g->group, WEFT_BYTES_IN);
    weft_close(&out);
}

#if !WEFT_DMA
/* Results of a tile to its place in C, from the first of its rows on. */
static void take_tile(weft_in *in, unsigned char *row, ptrdiff_t step, uint32_t rows,
                      uint32_t width, unsigned size, int aligned)
{
    uint32_t bytes = width * size, all = slots(width) * size;
#if WEFT_FIFO
    if (aligned && bytes % 4 == 0 && all % 4 == 0 && in->left == 0) {
        weft_take_words(in, row, step, rows, bytes / 4, all / 4);
        return;
    }
#endif
    (void)aligned;
    weft_take(in, row, step, rows, bytes, all);
}

/* The results of the next job, to where they belong in C. */
void weft_unpack(weft_core *core)
{
    const weft_product *p = core->product;
    const ptrdiff_t step = p->c_row;
    uint32_t m = core->height, rows;
    size_t padding;
    unsigned size = weft_result_size(p->finish);
    unsigned char *first = (unsigned char *)p->c + (ptrdiff_t)core->row * step
                           + (size_t)core->col * size;
    int aligned = step % 4 == 0 && WEFT_ALIGNED(first) && WEFT_COLS * size % 4 == 0;
    weft_in in = weft_results(core);
    for (; m > 0; m -= rows, first += (ptrdiff_t)WEFT_ROWS * step) {
        unsigned char *row = first;
        uint32_t n = core->width;
        rows = weft_least(WEFT_ROWS, m);
#if WEFT_FIFO
        if (aligned && size == 4) /* whole tiles of sums, by numbers that are known */
            for (; n >= WEFT_COLS; n -= WEFT_COLS, row += WEFT_COLS * 4)
                weft_take_words(&in, row, step, rows, WEFT_COLS, slots(WEFT_COLS));
#endif
        for (; n > WEFT_COLS; n -= WEFT_COLS, row += WEFT_COLS * size)
            take_tile(&in, row, step, rows, WEFT_COLS, size, aligned);
        if (n)
            take_tile(&in, row, step, rows, n, size, aligned);
    }
    padding = weft_result_bytes(core->height, core->width, size)
              - result_slots(core->height, core->width) * size;
    weft_take(&in, NULL, 0, 1, 0, (uint32_t)padding);
}
#endif
