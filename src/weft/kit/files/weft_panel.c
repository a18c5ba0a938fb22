/* Packs A and B into panels: in pieces of four bytes if possible, otherwise byte by byte. */
#include "weft_stream_io.h"

/*
 * A line is a row of A or a column of B; a word of a panel has WEFT_DEPTH values of each line.
 * UNIT: bytes of a line in a word. LINES: lines that share a piece. PIECES: pieces of a line.
 */
#define UNIT (WEFT_DEPTH * WEFT_VALUE_BYTES)
#define LINES (UNIT == 1 ? 4u : UNIT == 2 ? 2u : 1u)
#define PIECES (UNIT < 4 ? 1u : UNIT / 4u)

/* Words of `edge` lines that share a piece; 0 if the pieces differ, so that bytes are packed. */
#define WORDS(edge) \
    (WEFT_PIECE < 4 ? 0u \
     : UNIT % 4 == 0 || (UNIT < 3 && (edge) * UNIT % 4 == 0) ? 1u \
     : UNIT < 3 && (edge) * UNIT < 3 ? 4u / ((edge) * UNIT) : 0u)

/* A panel: value k of line e is at data + e*line + k*value. */
typedef struct panel {
    const unsigned char *data;
    ptrdiff_t line, value;
    uint32_t lines, k; /* lines and values in the operand; the rest of the panel is 0 */
    uint32_t edge;     /* lines of a word */
} panel;

/* The bytes of a piece are at offsets 0, second, third and second + third from the first byte. */
typedef struct piece_layout {
    uint32_t words; /* WORDS(edge) */
    ptrdiff_t second, third;
} piece_layout;

static inline void set_layout(piece_layout *c, uint32_t edge, ptrdiff_t line, ptrdiff_t value)
{
    const ptrdiff_t next = WEFT_VALUE_BYTES > 1 ? 1 : value; /* to the next byte of the line */
    c->words = WORDS(edge);
    c->second = next;
    c->third = 2 * next;
    if (UNIT == 2 && edge % 2 == 0) {
        c->third = line;
    } else if (UNIT == 1 && edge % 4 == 0) {
        c->second = line;
        c->third = 2 * line;
    } else if (UNIT == 1 && edge == 2) {
        c->second = line;
        c->third = value;
    } else if (WEFT_VALUE_BYTES == 2) {
        c->third = value;
    }
}

static inline uint32_t load_piece(const unsigned char *first, ptrdiff_t second, ptrdiff_t third)
{
    const unsigned char *high = first + third;
    uint32_t low = first[0] | (uint32_t)first[second] << 8;
    return low | (uint32_t)high[0] << 16 | (uint32_t)high[second] << 24;
}

/* A piece of which the operand has only the first `lines` lines. */
static inline uint32_t load_part(const unsigned char *first, const piece_layout *c, uint32_t lines)
{
    uint32_t piece = first[0];
    if (c->words == 2)
        return piece | (uint32_t)first[c->third] << 16;
    if (UNIT == 2 || lines > 1)
        piece |= (uint32_t)first[c->second] << 8;
    if (UNIT == 1 && lines > 2)
        piece |= (uint32_t)first[c->third] << 16;
    return piece;
}

/* Pack words w to end - 1 of a panel byte by byte; values outside the operand are 0. */
static void put_bytes(weft_writer *out, const panel *p, uint32_t w, uint32_t end)
{
    uint32_t e, d, piece = 0;
    unsigned byte, shift = 0;
    for (; w < end; w++) {
        uint32_t first = w * WEFT_DEPTH, values = first < p->k ? p->k - first : 0;
        const unsigned char *line = p->data + (ptrdiff_t)first * p->value;
        for (e = 0; e < p->edge; e++, line += p->line) {
            const unsigned char *value = line;
            for (d = 0; d < WEFT_DEPTH; d++, value += p->value)
                for (byte = 0; byte < WEFT_VALUE_BYTES; byte++) {
                    if (e < p->lines && d < values)
                        piece |= (uint32_t)value[byte] << shift;
                    shift += 8;
                    if (shift == 8 * WEFT_PIECE) {
                        weft_put_piece(out, piece);
                        piece = 0;
                        shift = 0;
                    }
                }
        }
    }
    if (shift)
        weft_put_piece(out, piece);
}

/* The same in pieces, for words that have all values along K. */
static void put_pieces(weft_writer *out, const panel *p, const piece_layout *c, uint32_t w,
                       uint32_t end)
{
    const ptrdiff_t word_step = (ptrdiff_t)(c->words * WEFT_DEPTH) * p->value;
    const ptrdiff_t line_step = (ptrdiff_t)LINES * p->line, second = c->second, third = c->third;
    const unsigned char *word = p->data + (ptrdiff_t)(w * WEFT_DEPTH) * p->value, *line, *first;
    uint32_t full = p->lines / LINES, partial = p->lines % LINES, n, inner;
    uint32_t empty = (p->edge - p->lines) / LINES * PIECES;
    weft_writer to = *out;
    if (c->words > 1) {
        full = p->lines == p->edge;
        partial = !full;
        empty = 0;
    }
    for (; w < end; w += c->words, word += word_step) {
        if (!weft_reserve(&to, full * PIECES + (partial > 0) + empty))
            break;
        for (line = word, n = full; n > 0; n--, line += line_step)
            for (first = line, inner = PIECES; inner > 0; inner--, first += 4 * second)
                weft_put(&to, load_piece(first, second, third));
        if (partial)
            weft_put(&to, load_part(line, c, partial));
        for (n = empty; n > 0; n--)
            weft_put(&to, 0);
    }
    *out = to;
}

/* Pack words w to end - 1: full words in pieces, then partial words in bytes, then zeros. */
static void put_words(weft_writer *out, const panel *p, const piece_layout *c, uint32_t w,
                      uint32_t end)
{
    uint32_t mask = c->words - 1, words = weft_ceil(p->k, WEFT_DEPTH);
    uint32_t full_end = weft_min(end, p->k / WEFT_DEPTH & ~mask);
    uint32_t data_end = weft_min(end, (words + mask) & ~mask);
    if (w < full_end && p->edge * UNIT / 4 <= WEFT_RESERVE_MAX) {
        put_pieces(out, p, c, w, full_end);
        w = full_end;
    }
    if (w < data_end) {
        put_bytes(out, p, w, data_end);
        w = data_end;
    }
    if (w < end)
        weft_put_zeros(out, (end - w) * p->edge * UNIT / 4);
}

/* Pack panels with any number of lines and any k. */
static void put_any(weft_writer *out, const weft_geometry *g, const void *data, ptrdiff_t line,
                    ptrdiff_t value, uint32_t lines, uint32_t k)
{
    uint32_t pad = (g->segments * WEFT_BYTES_IN - g->group * g->edge * UNIT) / WEFT_PIECE;
    uint32_t words = (weft_ceil(k, WEFT_DEPTH) + g->group - 1) & ~(g->group - 1);
    uint32_t step = pad || !WORDS(g->edge) ? g->group : words, w;
    panel p;
    piece_layout c;
    p.data = data;
    p.line = line;
    p.value = value;
    p.k = k;
    p.edge = g->edge;
    set_layout(&c, p.edge, line, value);
    for (; lines > 0; lines -= p.lines, p.data += (ptrdiff_t)p.edge * line) {
        p.lines = weft_min(lines, p.edge);
        for (w = 0; w < words; w += step) {
            if (c.words)
                put_words(out, &p, &c, w, w + step);
            else
                put_bytes(out, &p, w, w + step);
            weft_put_zeros(out, pad);
        }
    }
}

/*
 * Pack panels that have all `edge` lines: in each panel `count` groups of WORDS(edge) words, then
 * `zeros` pieces of zeros. Callers pass constants as `edge` and `aligned`.
 */
WEFT_INLINE void put_panels(weft_writer *out, const unsigned char *data, ptrdiff_t line,
                              ptrdiff_t value, uint32_t panels, uint32_t count, uint32_t zeros,
                              const piece_layout *c, uint32_t edge, int aligned)
{
    const uint32_t pieces = WORDS(edge) > 1 ? 1 : edge * UNIT / 4;
    const ptrdiff_t word_step = (ptrdiff_t)(WORDS(edge) * WEFT_DEPTH) * value;
    const unsigned char *word, *part, *first;
    weft_writer to = *out; /* a local copy can stay in registers */
    const uint32_t all = pieces * count;
    uint32_t w, n, inner;
    for (; panels > 0; panels--, data += (ptrdiff_t)edge * line) {
        if (all <= WEFT_RESERVE_MAX && !weft_reserve(&to, all))
            break;
        for (word = data, w = count; w > 0; w--, word += word_step) {
            if (all > WEFT_RESERVE_MAX && pieces <= WEFT_RESERVE_MAX && !weft_reserve(&to, pieces))
                break;
            for (part = word, n = pieces / PIECES; n > 0; n--, part += (ptrdiff_t)LINES * line) {
                if (pieces > WEFT_RESERVE_MAX && !weft_reserve(&to, PIECES))
                    break;
                for (first = part, inner = PIECES; inner > 0; inner--, first += 4 * c->second)
                    weft_put(&to, aligned ? *(const weft_word *)(const void *)first
                                          : load_piece(first, c->second, c->third));
            }
        }
        if (zeros)
            weft_put_zeros(&to, zeros);
    }
    *out = to;
}

/* Pack the panels of A or B. Callers pass a constant as `side`. */
WEFT_INLINE void put_side(weft_core *core, unsigned side, const unsigned char *data,
                            ptrdiff_t line, ptrdiff_t value, uint32_t lines, uint32_t k)
{
    const weft_geometry *g = &weft_regions[side];
    const uint32_t edge = side == WEFT_A ? WEFT_ROWS : WEFT_COLS;
    const uint32_t words = WORDS(edge) ? WORDS(edge) : 1;
    weft_writer out = weft_writer_open(core);
    if (WORDS(edge) && k % (words * WEFT_DEPTH) == 0
        && g->group * edge * UNIT == g->segments * WEFT_BYTES_IN) {
        uint32_t full_words = k / WEFT_DEPTH, panels = lines / edge;
        uint32_t zeros = ((0u - full_words) & (g->group - 1)) * edge * UNIT / 4;
        ptrdiff_t steps = (ptrdiff_t)(words * WEFT_DEPTH) * value; /* all strides, or-ed */
        piece_layout c;
        set_layout(&c, edge, line, value);
        steps |= (ptrdiff_t)edge * line | (edge > LINES ? (ptrdiff_t)LINES * line : 0);
        if (c.second == 1 && c.third == 2 && steps % 4 == 0 && WEFT_ALIGNED(data))
            put_panels(&out, data, line, value, panels, full_words / words, zeros, &c, edge, 1);
        else
            put_panels(&out, data, line, value, panels, full_words / words, zeros, &c, edge, 0);
        data += (ptrdiff_t)(panels * edge) * line;
        lines -= panels * edge;
    }
    if (lines)
        put_any(&out, g, data, line, value, lines, k);
    weft_writer_close(&out);
}

static void put_rows(weft_core *core, const void *data, ptrdiff_t line, ptrdiff_t value,
                     uint32_t lines, uint32_t k)
{
    put_side(core, WEFT_A, data, line, value, lines, k);
}

static void put_columns(weft_core *core, const void *data, ptrdiff_t line, ptrdiff_t value,
                        uint32_t lines, uint32_t k)
{
    put_side(core, WEFT_B, data, line, value, lines, k);
}

void weft_put_lines(weft_core *core, unsigned side, const void *data, ptrdiff_t line,
                    ptrdiff_t value, uint32_t lines, uint32_t k)
{
    if (side == WEFT_A)
        put_rows(core, data, line, value, lines, k);
    else
        put_columns(core, data, line, value, lines, k);
}
