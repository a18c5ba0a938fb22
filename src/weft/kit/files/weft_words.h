/* How what is packed reaches each bus, and results leave it: a piece of a stream at a time. */
#ifndef WEFT_WORDS_H
#define WEFT_WORDS_H

#include "weft_inner.h"

/* Bytes that are put at once: four, or a whole word of a stream that is narrower. */
#define WEFT_PIECE (WEFT_BYTES_IN < 4 ? WEFT_BYTES_IN : 4)

/* Arguments that are constants of a call must be constants in the function. */
#ifdef __GNUC__
#define WEFT_INLINE static inline __attribute__((__always_inline__))
#else
#define WEFT_INLINE static inline
#endif

/* Compilers that have no such type move byte by byte. */
#if defined(__GNUC__)
typedef uint32_t __attribute__((__may_alias__)) weft_word;
#define WEFT_ALIGNED(place) (((uintptr_t)(place) & 3) == 0)
#else
typedef uint32_t weft_word;
#define WEFT_ALIGNED(place) ((void)(place), 0)
#endif

/*
 * Where the next piece goes. It is a copy of the core's own fields, which a compiler keeps in
 * registers, from weft_open() to weft_close().
 */
typedef struct weft_out {
    weft_core *core;
#if WEFT_FIFO
    void *base;
    uint32_t room;
#else
    unsigned char *next;
    size_t left;
#endif
} weft_out;

static inline weft_out weft_open(weft_core *core)
{
    weft_out out;
    out.core = core;
#if WEFT_FIFO
    out.base = core->base;
    out.room = core->room;
#else
    out.next = core->buffer + core->used;
    out.left = core->buffer_bytes - core->used;
#endif
    return out;
}

static inline void weft_close(weft_out *out)
{
#if WEFT_FIFO
    out->core->room = out->room;
#else
    out->core->used = out->core->buffer_bytes - out->left;
#endif
}

/* Room for the next pieces, WEFT_CLAIM of them at most; 0 after an error. */
#define WEFT_CLAIM 256u
static inline int weft_claim(weft_out *out, uint32_t pieces)
{
#if WEFT_FIFO
    if (out->room < pieces) {
        out->room = weft_wait_room(out->core, pieces);
        if (out->room < pieces)
            return 0;
    }
    out->room -= pieces;
#else
    size_t bytes = (size_t)pieces * WEFT_PIECE;
    if (out->left < bytes) {
        out->core->error = WEFT_ROOM;
        return 0;
    }
    out->left -= bytes;
#endif
    return 1;
}

/* The next WEFT_PIECE bytes, the low one first, for which there is room. */
static inline void weft_put(weft_out *out, uint32_t piece)
{
#if WEFT_FIFO
    WEFT_WRITE(out->base, offsetof(weft_t, cmd_fifo), piece);
#else
    unsigned n;
    if (WEFT_PIECE == 4 && WEFT_ALIGNED(out->next))
        *(weft_word *)(void *)out->next = piece;
    else
        for (n = 0; n < WEFT_PIECE; n++)
            out->next[n] = (unsigned char)(piece >> 8 * n);
    out->next += WEFT_PIECE;
#endif
}

static inline void weft_put_one(weft_out *out, uint32_t piece)
{
    if (weft_claim(out, 1))
        weft_put(out, piece);
}

static inline void weft_put_zeros(weft_out *out, uint32_t pieces)
{
    while (pieces--)
        weft_put_one(out, 0);
}

#if !WEFT_DMA
/* Where the next results are. */
typedef struct weft_in {
#if WEFT_FIFO
    void *base;
    uint32_t word, left; /* bytes that a row ended amid, and how many */
#else
    const unsigned char *next;
#endif
} weft_in;

static inline weft_in weft_results(weft_core *core)
{
    weft_in in;
#if WEFT_FIFO
    in.base = core->base;
    in.word = in.left = 0;
#else
    in.next = core->results;
#endif
    return in;
}

/* Rows of results: of the next `all` bytes, the first `bytes` go to memory. */
static inline void weft_take(weft_in *in, unsigned char *row, ptrdiff_t step, uint32_t rows,
                             uint32_t bytes, uint32_t all)
{
    uint32_t n;
    for (; rows > 0; rows--, row += step) {
#if WEFT_FIFO
        for (n = 0; n < all; n++, in->word >>= 8, in->left--) {
            if (in->left == 0) {
                in->word = WEFT_READ(in->base, offsetof(weft_t, result_fifo));
                in->left = 4;
            }
            if (n < bytes)
                row[n] = (unsigned char)in->word;
        }
#else
        for (n = 0; n < bytes; n++)
            row[n] = in->next[n];
        in->next += all;
#endif
    }
}

#if WEFT_FIFO
/* The same in words, where rows of results begin with a word, and rows of memory are aligned. */
WEFT_INLINE void weft_take_words(const weft_in *in, unsigned char *row, ptrdiff_t step,
                                   uint32_t rows, uint32_t words, uint32_t all)
{
    uint32_t n;
    for (; rows > 0; rows--, row += step) {
        weft_word *word = (weft_word *)(void *)row;
        for (n = 0; n < words; n++)
            word[n] = WEFT_READ(in->base, offsetof(weft_t, result_fifo));
        for (; n < all; n++)
            (void)WEFT_READ(in->base, offsetof(weft_t, result_fifo));
    }
}
#endif
#endif

#endif
