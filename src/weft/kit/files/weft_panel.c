/* Operands as panels: in pieces of four bytes where words are made of them, else byte by byte. */
#include "weft_words.h"

/* Bytes of a line in a word of a panel; lines that share a piece, and pieces of a line. */
#define UNIT (WEFT_DEPTH * WEFT_VALUE_BYTES)
#define LINES (UNIT == 1 ? 4u : UNIT == 2 ? 2u : 1u)
#define PIECES (UNIT < 4 ? 1u : UNIT / 4u)
#define MOST 256u /* pieces for which room is asked for at once */

/* A panel: value k of line e lies at data + e*line + k*value. */
typedef struct panel {
    const unsigned char *data;
    ptrdiff_t line, value;
    uint32_t lines, k; /* that are there */
    uint32_t edge;     /* lines of a word */
} panel;

/*
 * How words are cut into pieces: of one line, of LINES lines of a word, or of `words` words, which
 * is 0 where no piece is like another. The bytes of a piece lie at 0, second, third, and the sum
 * of both.
 */
typedef struct cut {
    uint32_t words;
    ptrdiff_t second, third;
} cut;

static void cut_words(cut *c, const panel *p)
{
    ptrdiff_t next = WEFT_VALUE_BYTES > 1 ? 1 : p->value; /* from byte to byte of a line */
    c->words = WEFT_PIECE == 4;
    c->second = next;
    c->third = 2 * next;
    if (UNIT == 2 && p->edge % 2 == 0) {
        c->third = p->line;
    } else if (UNIT == 1 && p->edge % 4 == 0) {
        c->second = p->line;
        c->third = 2 * p->line;
    } else if (UNIT < 3 && UNIT * p->edge < 3) {
        c->words *= 4 / (UNIT * p->edge);
        if (p->edge == 2)
            c->second = p->line;
        if (p->edge == 2 || WEFT_VALUE_BYTES == 2)
            c->third = p->value;
    } else if (UNIT % 4) {
        c->words = 0;
    }
}

/* Words from w to the end, whatever is there of them. */
static void put_bytes(weft_out *out, const panel *p, uint32_t w, uint32_t end)
{
    uint32_t e, d, piece = 0;
    unsigned byte, shift = 0;
    for (; w < end; w++) {
        uint32_t first = w * WEFT_DEPTH, values = first < p->k ? p->k - first : 0;
        const unsigned char *line = p->data + (ptrdiff_t)first * p->value;
        for (e = 0; e < p->edge; e++, line += p->line) {
            const unsigned char *place = line;
            for (d = 0; d < WEFT_DEPTH; d++, place += p->value)
                for (byte = 0; byte < WEFT_VALUE_BYTES; byte++) {
                    if (e < p->lines && d < values)
                        piece |= (uint32_t)place[byte] << shift;
                    shift += 8;
                    if (shift == 8 * WEFT_PIECE) {
                        weft_put_one(out, piece);
                        piece = 0;
                        shift = 0;
                    }
                }
        }
    }
    if (shift)
        weft_put_one(out, piece);
}

static inline uint32_t piece_at(const unsigned char *place, ptrdiff_t second, ptrdiff_t third)
{
    const unsigned char *high = place + third;
    uint32_t low = place[0] | (uint32_t)place[second] << 8;
    return low | (uint32_t)high[0] << 16 | (uint32_t)high[second] << 24;
}

/* The bytes of a piece that lie on lines that are there. */
static uint32_t part_at(const unsigned char *place, const cut *c, uint32_t lines)
{
    uint32_t piece = place[0];
    if (c->words == 2)
        return piece | (uint32_t)place[c->third] << 16;
    if (UNIT == 2 || lines > 1)
        piece |= (uint32_t)place[c->second] << 8;
    if (UNIT == 1 && lines > 2)
        piece |= (uint32_t)place[c->third] << 16;
    return piece;
}

/*
 * Words from w to the end, with all values of k, on fewer lines than a word has: `full` times all
 * lines that share a piece, a piece with `rest` of them, where that is not 0; `none` are zero.
 */
static void put_some(weft_out *out, const panel *p, const cut *c, uint32_t w, uint32_t end)
{
    const ptrdiff_t word_step = (ptrdiff_t)(c->words * WEFT_DEPTH) * p->value;
    const unsigned char *word = p->data + (ptrdiff_t)(w * WEFT_DEPTH) * p->value, *line, *place;
    uint32_t full = p->lines / LINES, rest = p->lines % LINES, n, inner;
    uint32_t none = (p->edge - p->lines) / LINES * PIECES;
    if (p->edge * UNIT < 4) {
        full = p->lines == p->edge;
        rest = !full;
        none = 0;
    }
    for (; w < end; w += c->words, word += word_step) {
        for (line = word, n = full; n > 0; n--, line += (ptrdiff_t)LINES * p->line)
            for (place = line, inner = PIECES; inner > 0; inner--, place += 4 * c->second)
                weft_put_one(out, piece_at(place, c->second, c->third));
        if (rest)
            weft_put_one(out, part_at(line, c, rest));
        weft_put_zeros(out, none);
    }
}

/* Whether pieces are words of memory, of `edge` lines and panel by panel. */
static int whole(const panel *p, const cut *c, uint32_t edge)
{
    ptrdiff_t steps = edge > LINES ? (ptrdiff_t)LINES * p->line : 0;
    steps |= (ptrdiff_t)(c->words * WEFT_DEPTH) * p->value | (ptrdiff_t)edge * p->line;
    return c->second == 1 && c->third == 2 && steps % 4 == 0 && WEFT_ALIGNED(p->data);
}

/*
 * Whole words of panels that have all `edge` lines, with `zeros` behind each panel. `edge` and
 * `aligned` are constants where it is called.
 */
static inline void put_panels(weft_out *out, const panel *p, const cut *c, uint32_t panels,
                              uint32_t zeros, uint32_t edge, int aligned)
{
    const ptrdiff_t second = c->second, third = c->third, line_step = (ptrdiff_t)LINES * p->line;
    const ptrdiff_t word_step = (ptrdiff_t)(c->words * WEFT_DEPTH) * p->value;
    const ptrdiff_t panel_step = (ptrdiff_t)edge * p->line;
    const uint32_t pieces = edge * UNIT < 4 ? 1 : edge * UNIT / 4;
    const uint32_t times = p->k / WEFT_DEPTH / c->words;
    const unsigned char *data = p->data, *word, *line, *place;
    weft_out to = *out; /* which may stay in registers */
    uint32_t w, n, inner;
    for (; panels > 0; panels--, data += panel_step) {
        for (word = data, w = times; w > 0; w--, word += word_step) {
            if (pieces <= MOST && !weft_reserve(&to, pieces))
                break;
            for (line = word, n = pieces / PIECES; n > 0; n--, line += line_step) {
                if (pieces > MOST && !weft_reserve(&to, PIECES))
                    break;
                for (place = line, inner = PIECES; inner > 0; inner--, place += 4 * second)
                    weft_put(&to, aligned ? *(const weft_word *)(const void *)place
                                          : piece_at(place, second, third));
            }
        }
        weft_put_zeros(&to, zeros);
    }
    *out = to;
}

static void put_rows(weft_out *out, const panel *p, const cut *c, uint32_t panels, uint32_t zeros)
{
    if (whole(p, c, WEFT_ROWS))
        put_panels(out, p, c, panels, zeros, WEFT_ROWS, 1);
    else
        put_panels(out, p, c, panels, zeros, WEFT_ROWS, 0);
}

static void put_cols(weft_out *out, const panel *p, const cut *c, uint32_t panels, uint32_t zeros)
{
    if (whole(p, c, WEFT_COLS))
        put_panels(out, p, c, panels, zeros, WEFT_COLS, 1);
    else
        put_panels(out, p, c, panels, zeros, WEFT_COLS, 0);
}

/* The words of a stream word, or of the panel where no stream word is padded. */
static void put_words(weft_out *out, const panel *p, const cut *c, uint32_t w, uint32_t end)
{
    uint32_t few = c->words - 1, words = weft_ceil(p->k, WEFT_DEPTH);
    uint32_t last = weft_least(end, p->k / WEFT_DEPTH & ~few);
    uint32_t there = weft_least(end, (words + few) & ~few);
    if (w < last) {
        put_some(out, p, c, w, last);
        w = last;
    }
    if (w < there) {
        put_bytes(out, p, w, there);
        w = there;
    }
    if (w < end)
        weft_put_zeros(out, (end - w) * p->edge * UNIT / 4);
}

void weft_put_lines(weft_core *core, unsigned side, const void *data, ptrdiff_t line,
                    ptrdiff_t value, uint32_t lines, uint32_t k)
{
    const weft_geometry *g = &weft_regions[side];
    uint32_t pad = (g->segments * WEFT_BYTES_IN - g->group * g->edge * UNIT) / WEFT_PIECE;
    uint32_t all = (weft_ceil(k, WEFT_DEPTH) + g->group - 1) & ~(g->group - 1);
    uint32_t chunk = pad ? g->group : all, w;
    weft_out out = weft_open(core);
    panel p;
    cut c;
    p.data = data;
    p.line = line;
    p.value = value;
    p.k = k;
    p.edge = g->edge;
    cut_words(&c, &p);
    if (c.words && !pad && k % (c.words * WEFT_DEPTH) == 0) {
        uint32_t zeros = (all - k / WEFT_DEPTH) * p.edge * UNIT / 4;
        if (side == WEFT_A)
            put_rows(&out, &p, &c, lines / WEFT_ROWS, zeros);
        else
            put_cols(&out, &p, &c, lines / WEFT_COLS, zeros);
        p.data += (ptrdiff_t)(lines - lines % p.edge) * line;
        lines %= p.edge;
    }
    for (; lines > 0; lines -= p.lines, p.data += (ptrdiff_t)g->edge * line) {
        p.lines = weft_least(lines, g->edge);
        for (w = 0; w < all; w += chunk) {
            if (c.words)
                put_words(&out, &p, &c, w, w + chunk);
            else
                put_bytes(&out, &p, w, w + chunk);
            weft_put_zeros(&out, pad);
        }
    }
    weft_close(&out);
}
