/* Operands as panels: in pieces of four bytes where words are made of them, else byte by byte. */
#include "weft_words.h"

/* Bytes of a line in a word of a panel; lines that share a piece, and pieces of a line. */
#define UNIT (WEFT_DEPTH * WEFT_VALUE_BYTES)
#define LINES (UNIT == 1 ? 4u : UNIT == 2 ? 2u : 1u)
#define PIECES (UNIT < 4 ? 1u : UNIT / 4u)

/* Words of `edge` lines that share a piece; 0 where no piece is like another. */
#define WORDS(edge) \
    (WEFT_PIECE < 4 ? 0u \
     : UNIT % 4 == 0 || (UNIT < 3 && (edge) * UNIT % 4 == 0) ? 1u \
     : UNIT < 3 && (edge) * UNIT < 3 ? 4u / ((edge) * UNIT) : 0u)

/* A panel: value k of line e lies at data + e*line + k*value. */
typedef struct panel {
    const unsigned char *data;
    ptrdiff_t line, value;
    uint32_t lines, k; /* that are there */
    uint32_t edge;     /* lines of a word */
} panel;

/* The bytes of a piece lie at 0, second, third and second + third from its first one. */
typedef struct cut {
    uint32_t words; /* as WORDS says */
    ptrdiff_t second, third;
} cut;

static inline void cut_words(cut *c, uint32_t edge, ptrdiff_t line, ptrdiff_t value)
{
    const ptrdiff_t next = WEFT_VALUE_BYTES > 1 ? 1 : value; /* from byte to byte of a line */
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

static inline uint32_t piece_at(const unsigned char *place, ptrdiff_t second, ptrdiff_t third)
{
    const unsigned char *high = place + third;
    uint32_t low = place[0] | (uint32_t)place[second] << 8;
    return low | (uint32_t)high[0] << 16 | (uint32_t)high[second] << 24;
}

/* The bytes of a piece that lie on the first `lines` of its lines. */
static inline uint32_t part_at(const unsigned char *place, const cut *c, uint32_t lines)
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

/* Words of a panel from w to the end, whatever is there of them. */
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

/* The same in pieces, of words that have all values of k on the lines that are there. */
static void put_pieces(weft_out *out, const panel *p, const cut *c, uint32_t w, uint32_t end)
{
    const ptrdiff_t word_step = (ptrdiff_t)(c->words * WEFT_DEPTH) * p->value;
    const ptrdiff_t line_step = (ptrdiff_t)LINES * p->line, second = c->second, third = c->third;
    const unsigned char *word = p->data + (ptrdiff_t)(w * WEFT_DEPTH) * p->value, *line, *place;
    uint32_t full = p->lines / LINES, rest = p->lines % LINES, n, inner;
    uint32_t none = (p->edge - p->lines) / LINES * PIECES;
    weft_out to = *out;
    if (c->words > 1) {
        full = p->lines == p->edge;
        rest = !full;
        none = 0;
    }
    for (; w < end; w += c->words, word += word_step) {
        if (!weft_claim(&to, full * PIECES + (rest > 0) + none))
            break;
        for (line = word, n = full; n > 0; n--, line += line_step)
            for (place = line, inner = PIECES; inner > 0; inner--, place += 4 * second)
                weft_put(&to, piece_at(place, second, third));
        if (rest)
            weft_put(&to, part_at(line, c, rest));
        for (n = none; n > 0; n--)
            weft_put(&to, 0);
    }
    *out = to;
}

/* The words of a stream word, or of the panel where no stream word is padded. */
static void put_words(weft_out *out, const panel *p, const cut *c, uint32_t w, uint32_t end)
{
    uint32_t few = c->words - 1, words = weft_ceil(p->k, WEFT_DEPTH);
    uint32_t last = weft_least(end, p->k / WEFT_DEPTH & ~few);
    uint32_t there = weft_least(end, (words + few) & ~few);
    if (w < last && p->edge * UNIT / 4 <= WEFT_CLAIM) {
        put_pieces(out, p, c, w, last);
        w = last;
    }
    if (w < there) {
        put_bytes(out, p, w, there);
        w = there;
    }
    if (w < end)
        weft_put_zeros(out, (end - w) * p->edge * UNIT / 4);
}

/* Panels of any lines and any k. */
static void put_any(weft_out *out, const weft_geometry *g, const void *data, ptrdiff_t line,
                    ptrdiff_t value, uint32_t lines, uint32_t k)
{
    uint32_t pad = (g->segments * WEFT_BYTES_IN - g->group * g->edge * UNIT) / WEFT_PIECE;
    uint32_t all = (weft_ceil(k, WEFT_DEPTH) + g->group - 1) & ~(g->group - 1);
    uint32_t chunk = pad || !WORDS(g->edge) ? g->group : all, w;
    panel p;
    cut c;
    p.data = data;
    p.line = line;
    p.value = value;
    p.k = k;
    p.edge = g->edge;
    cut_words(&c, p.edge, line, value);
    for (; lines > 0; lines -= p.lines, p.data += (ptrdiff_t)p.edge * line) {
        p.lines = weft_least(lines, p.edge);
        for (w = 0; w < all; w += chunk) {
            if (c.words)
                put_words(out, &p, &c, w, w + chunk);
            else
                put_bytes(out, &p, w, w + chunk);
            weft_put_zeros(out, pad);
        }
    }
}

/*
 * Panels that have all `edge` lines: `times` words in each, or so many groups of WORDS, and `zeros`
 * behind them. `edge` and `aligned` are constants where it is called.
 */
WEFT_INLINE void put_panels(weft_out *out, const unsigned char *data, ptrdiff_t line,
                              ptrdiff_t value, uint32_t panels, uint32_t times, uint32_t zeros,
                              const cut *c, uint32_t edge, int aligned)
{
    const uint32_t pieces = WORDS(edge) > 1 ? 1 : edge * UNIT / 4;
    const ptrdiff_t word_step = (ptrdiff_t)(WORDS(edge) * WEFT_DEPTH) * value;
    const unsigned char *word, *part, *place;
    weft_out to = *out; /* which may stay in registers */
    const uint32_t all = pieces * times;
    uint32_t w, n, inner;
    for (; panels > 0; panels--, data += (ptrdiff_t)edge * line) {
        if (all <= WEFT_CLAIM && !weft_claim(&to, all))
            break;
        for (word = data, w = times; w > 0; w--, word += word_step) {
            if (all > WEFT_CLAIM && pieces <= WEFT_CLAIM && !weft_claim(&to, pieces))
                break;
            for (part = word, n = pieces / PIECES; n > 0; n--, part += (ptrdiff_t)LINES * line) {
                if (pieces > WEFT_CLAIM && !weft_claim(&to, PIECES))
                    break;
                for (place = part, inner = PIECES; inner > 0; inner--, place += 4 * c->second)
                    weft_put(&to, aligned ? *(const weft_word *)(const void *)place
                                          : piece_at(place, c->second, c->third));
            }
        }
        if (zeros)
            weft_put_zeros(&to, zeros);
    }
    *out = to;
}

/* The panels of A or B, which is a constant where it is called. */
WEFT_INLINE void put_side(weft_core *core, unsigned side, const unsigned char *data,
                            ptrdiff_t line, ptrdiff_t value, uint32_t lines, uint32_t k)
{
    const weft_geometry *g = &weft_regions[side];
    const uint32_t edge = side == WEFT_A ? WEFT_ROWS : WEFT_COLS;
    const uint32_t words = WORDS(edge) ? WORDS(edge) : 1;
    weft_out out = weft_open(core);
    if (WORDS(edge) && k % (words * WEFT_DEPTH) == 0
        && g->group * edge * UNIT == g->segments * WEFT_BYTES_IN) {
        uint32_t there = k / WEFT_DEPTH, panels = lines / edge;
        uint32_t zeros = ((0u - there) & (g->group - 1)) * edge * UNIT / 4;
        ptrdiff_t steps = (ptrdiff_t)(words * WEFT_DEPTH) * value;
        cut c;
        cut_words(&c, edge, line, value);
        steps |= (ptrdiff_t)edge * line | (edge > LINES ? (ptrdiff_t)LINES * line : 0);
        if (c.second == 1 && c.third == 2 && steps % 4 == 0 && WEFT_ALIGNED(data))
            put_panels(&out, data, line, value, panels, there / words, zeros, &c, edge, 1);
        else
            put_panels(&out, data, line, value, panels, there / words, zeros, &c, edge, 0);
        data += (ptrdiff_t)(panels * edge) * line;
        lines -= panels * edge;
    }
    if (lines)
        put_any(&out, g, data, line, value, lines, k);
    weft_close(&out);
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
