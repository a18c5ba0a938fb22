/* Panels and headers as the core takes them, results as it gives them. */
#include "weft_inner.h"

const weft_geometry weft_regions[] = WEFT_REGIONS;

uint32_t weft_ceil(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

uint32_t weft_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

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

unsigned weft_result_size(unsigned finish)
{
    return finish & (WEFT_REQUANTIZE | WEFT_ROUND) ? WEFT_NARROW_BYTES : 4;
}

/* Results of a row of a tile are padded to whole chunks. */
static uint32_t slots(uint32_t width)
{
    return weft_ceil(width, WEFT_LANES) * WEFT_LANES;
}

/* Of one job on the stream. */
size_t weft_result_bytes(uint32_t m, uint32_t n, unsigned size)
{
    size_t row = (size_t)(n / WEFT_COLS) * slots(WEFT_COLS) + slots(n % WEFT_COLS);
    size_t all = row * m * size;
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

void weft_put_header(weft_core *core, const uint32_t words[8])
{
    unsigned n, byte;
    for (n = 0; n < 8; n++)
        for (byte = 0; byte < 4; byte++)
            weft_put(core, words[n] >> 8 * byte & 0xFF);
    for (n = 32; n < WEFT_BYTES_IN; n++)
        weft_put(core, 0);
}

static void put_word(weft_core *core, const weft_geometry *g, const weft_source *s, uint32_t w)
{
    uint32_t e, d, byte;
    for (e = 0; e < g->edge; e++) {
        const unsigned char *place = s->data + (ptrdiff_t)e * s->line + (ptrdiff_t)w * s->word;
        for (d = 0; d < g->depth; d++, place += s->value) {
            int there = w < s->words && e + w * s->less < s->lines
                        && (s->less || w * g->depth + d < s->values);
            for (byte = 0; byte < g->size; byte++)
                weft_put(core, there ? place[byte] : 0);
        }
    }
}

void weft_put_panel(weft_core *core, unsigned region, const weft_source *source)
{
    const weft_geometry *g = &weft_regions[region];
    uint32_t used = g->group * g->edge * g->depth * g->size, line, w, pad;
    for (line = 0; line < weft_ceil(source->words, g->group); line++) {
        for (w = 0; w < g->group; w++)
            put_word(core, g, source, line * g->group + w);
        for (pad = used; pad < g->segments * WEFT_BYTES_IN; pad++)
            weft_put(core, 0);
    }
}

/* Rows of A, or columns of B. */
weft_source weft_lines(const void *data, ptrdiff_t line, ptrdiff_t value, uint32_t lines,
                       uint32_t k)
{
    weft_source source;
    source.data = data;
    source.line = line;
    source.word = WEFT_DEPTH * value;
    source.value = value;
    source.lines = lines;
    source.less = 0;
    source.values = k;
    source.words = weft_ceil(k, WEFT_DEPTH);
    return source;
}

/* What finishes the columns of a panel of B: a line is a lane, a value a byte. */
weft_source weft_columns(const weft_product *product, uint32_t panel)
{
    weft_source source;
    uint32_t first = panel * WEFT_COLS;
    source.data = (const unsigned char *)(product->columns + first);
    source.line = sizeof(weft_column);
    source.word = WEFT_LANES * (ptrdiff_t)sizeof(weft_column);
    source.value = 1;
    source.lines = weft_least(WEFT_COLS, product->n - first);
    source.less = WEFT_LANES;
    source.values = sizeof(weft_column);
    source.words = weft_ceil(WEFT_COLS, WEFT_LANES);
    return source;
}

/* A row of sums to start from, the columns of a panel of B. */
weft_source weft_bias(const weft_product *product, uint32_t panel)
{
    uint32_t first = panel * WEFT_COLS;
    return weft_lines(product->bias + first, sizeof(float), 0,
                      weft_least(WEFT_COLS, product->n - first), 1);
}

weft_source weft_table(const uint8_t *table)
{
    weft_source source;
    source.data = table;
    source.line = 0;
    source.word = source.value = 1;
    source.lines = 1;
    source.less = 0;
    source.values = source.words = 256;
    return source;
}

#if !WEFT_DMA
/* The results of the next job, to where they belong in C. */
void weft_unpack(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t m = weft_height(core), n = weft_width(core), i, j, r, x, byte;
    unsigned size = weft_result_size(p->finish);
    size_t left = weft_result_bytes(m, n, size);
    for (i = 0; i < m; i += WEFT_ROWS)
        for (j = 0; j < n; j += WEFT_COLS)
            for (r = i; r < weft_least(i + WEFT_ROWS, m); r++) {
                uint32_t width = weft_least(WEFT_COLS, n - j), all = slots(width);
                unsigned char *place = (unsigned char *)p->c
                                       + (ptrdiff_t)(core->row + r) * p->c_row
                                       + (ptrdiff_t)(core->col + j) * (ptrdiff_t)size;
                for (x = 0; x < all; x++)
                    for (byte = 0; byte < size; byte++, left--) {
                        unsigned value = weft_take(core);
                        if (x < width)
                            *place++ = (unsigned char)value;
                    }
            }
    while (left--)
        weft_take(core);
}
#endif
