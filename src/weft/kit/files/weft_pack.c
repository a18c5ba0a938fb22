/* Packs headers, parameters, bias and table for the core; unpacks its results into C. */
#include "weft_stream_io.h"

uint32_t weft_panel_pages(uint32_t k)
{
    const weft_geometry *a = &weft_regions[WEFT_A];
    return weft_ceil(weft_ceil(k, a->depth), a->page);
}

/* Bytes of a panel in the command stream. */
size_t weft_panel_bytes(unsigned region, uint32_t words)
{
    const weft_geometry *g = &weft_regions[region];
    return (size_t)weft_ceil(words, g->group) * g->segments * WEFT_BYTES_IN;
}

/* Results of a tile row, padded to whole chunks. */
static uint32_t padded(uint32_t width)
{
    return weft_ceil(width, WEFT_LANES) * WEFT_LANES;
}

static size_t padded_results(uint32_t m, uint32_t n)
{
    return m * ((size_t)(n / WEFT_COLS) * padded(WEFT_COLS) + padded(n % WEFT_COLS));
}

/* Bytes of a job's results in the result stream. */
size_t weft_result_bytes(uint32_t m, uint32_t n, unsigned size)
{
    size_t bytes = padded_results(m, n) * size;
    return (bytes + WEFT_BYTES_OUT - 1) / WEFT_BYTES_OUT * WEFT_BYTES_OUT;
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
    weft_writer out = weft_writer_open(core);
    unsigned n, byte;
    if (weft_reserve(&out, 32 / WEFT_PIECE)) /* a header has 32 bytes */
        for (n = 0; n < 8; n++)
            for (byte = 0; byte < 4; byte += WEFT_PIECE)
                weft_put(&out, words[n] >> 8 * byte);
    weft_put_zeros(&out, WEFT_BYTES_IN > 32 ? 8 : 0); /* up to a stream word of 64 bytes */
    weft_writer_close(&out);
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

/* Send `bytes` bytes of `data`, then zeros up to `total` bytes. */
static void put_bytes(weft_writer *out, const void *data, size_t bytes, size_t total)
{
    const unsigned char *next = data;
    size_t n;
    unsigned byte;
    for (n = 0; n < bytes; n += WEFT_PIECE, next += WEFT_PIECE) {
        uint32_t piece = 0;
        for (byte = 0; byte < WEFT_PIECE; byte++)
            piece |= (uint32_t)next[byte] << 8 * byte;
        weft_put_piece(out, piece);
    }
    weft_put_zeros(out, (uint32_t)(total - bytes) / WEFT_PIECE);
}

/* Send the parameters of `count` panels of B; the last panel may have fewer columns. */
void weft_put_columns(weft_core *core, const weft_column *columns, uint32_t n, uint32_t count)
{
    size_t total = weft_panel_bytes(WEFT_PARAMETERS, weft_ceil(WEFT_COLS, WEFT_LANES));
    weft_writer out = weft_writer_open(core);
    for (; count--; columns += WEFT_COLS, n -= WEFT_COLS)
        put_bytes(&out, columns, weft_min(n, WEFT_COLS) * sizeof *columns, total);
    weft_writer_close(&out);
}

/* Send the bias of `count` panels of B. */
void weft_put_bias(weft_core *core, const float *bias, uint32_t n, uint32_t count)
{
    size_t total = weft_panel_bytes(WEFT_C, 1);
    weft_writer out = weft_writer_open(core);
    for (; count--; bias += WEFT_COLS, n -= WEFT_COLS)
        put_bytes(&out, bias, weft_min(n, WEFT_COLS) * sizeof *bias, total);
    weft_writer_close(&out);
}

void weft_put_table(weft_core *core, const uint8_t table[256])
{
    const weft_geometry *g = &weft_regions[WEFT_TABLE_ENTRIES];
    weft_writer out = weft_writer_open(core);
    uint32_t n;
    for (n = 0; n < 256; n += g->group)
        put_bytes(&out, table + n, g->group, WEFT_BYTES_IN);
    weft_writer_close(&out);
}

#if !WEFT_DMA
/* Store the results of a tile in C, where its first row starts at `row`. */
static void read_tile(weft_reader *in, unsigned char *row, ptrdiff_t stride, uint32_t rows,
                      uint32_t width, unsigned size, int aligned)
{
    uint32_t bytes = width * size, padded_bytes = padded(width) * size;
#if WEFT_FIFO
    if (aligned && bytes % 4 == 0 && padded_bytes % 4 == 0 && in->left == 0) {
        weft_read_row_words(in, row, stride, rows, bytes / 4, padded_bytes / 4);
        return;
    }
#endif
    (void)aligned;
    weft_read_rows(in, row, stride, rows, bytes, padded_bytes);
}

/* Store the results of the next job in C. */
void weft_unpack(weft_core *core)
{
    const weft_product *p = core->product;
    const ptrdiff_t stride = p->c_row_stride;
    uint32_t m = core->height, rows;
    size_t padding;
    unsigned size = weft_result_size(p->epilogue);
    unsigned char *first = (unsigned char *)p->c + (ptrdiff_t)core->row * stride
                           + (size_t)core->col * size;
    int aligned = stride % 4 == 0 && WEFT_ALIGNED(first) && WEFT_COLS * size % 4 == 0;
    weft_reader in = weft_reader_open(core);
    for (; m > 0; m -= rows, first += (ptrdiff_t)WEFT_ROWS * stride) {
        unsigned char *row = first;
        uint32_t n = core->width;
        rows = weft_min(WEFT_ROWS, m);
#if WEFT_FIFO
        if (aligned && size == 4) /* full tiles of sums: the compiler knows the counts */
            for (; n >= WEFT_COLS; n -= WEFT_COLS, row += WEFT_COLS * 4)
                weft_read_row_words(&in, row, stride, rows, WEFT_COLS, padded(WEFT_COLS));
#endif
        for (; n > WEFT_COLS; n -= WEFT_COLS, row += WEFT_COLS * size)
            read_tile(&in, row, stride, rows, WEFT_COLS, size, aligned);
        if (n)
            read_tile(&in, row, stride, rows, n, size, aligned);
    }
    padding = weft_result_bytes(core->height, core->width, size)
              - padded_results(core->height, core->width) * size;
    weft_read_rows(&in, NULL, 0, 1, 0, (uint32_t)padding);
}
#endif
