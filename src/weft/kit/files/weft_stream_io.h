/* Writes the command stream and reads the result stream, in pieces, for each kind of bus. */
#ifndef WEFT_STREAM_IO_H
#define WEFT_STREAM_IO_H

#include "weft_internal.h"

/* Bytes of a piece: four, or a whole stream word if that is narrower. */
#define WEFT_PIECE (WEFT_BYTES_IN < 4 ? WEFT_BYTES_IN : 4)

/* Functions that must be inlined, so that the compiler knows their constant arguments. */
#ifdef __GNUC__
#define WEFT_INLINE static inline __attribute__((__always_inline__))
#else
#define WEFT_INLINE static inline
#endif

/* A 32-bit word that may alias any object. Without such a type, data is copied byte by byte. */
#if defined(__GNUC__)
typedef uint32_t __attribute__((__may_alias__)) weft_word;
#define WEFT_ALIGNED(pointer) (((uintptr_t)(pointer) & 3) == 0)
#else
typedef uint32_t weft_word;
#define WEFT_ALIGNED(pointer) ((void)(pointer), 0)
#endif

/*
 * The position in the command stream. Between weft_writer_open() and weft_writer_close() it is a
 * copy of fields of the core, which the compiler can keep in registers.
 */
typedef struct weft_writer {
    weft_core *core;
#if WEFT_FIFO
    void *base;
    uint32_t cmd_free; /* words that the command FIFO can take */
#else
    unsigned char *next;
    size_t left;
#endif
} weft_writer;

static inline weft_writer weft_writer_open(weft_core *core)
{
    weft_writer out;
    out.core = core;
#if WEFT_FIFO
    out.base = core->base;
    out.cmd_free = core->cmd_free;
#else
    out.next = core->buffer + core->buffer_used;
    out.left = core->buffer_bytes - core->buffer_used;
#endif
    return out;
}

static inline void weft_writer_close(weft_writer *out)
{
#if WEFT_FIFO
    out->core->cmd_free = out->cmd_free;
#else
    out->core->buffer_used = out->core->buffer_bytes - out->left;
#endif
}

/* Reserve space for at most WEFT_RESERVE_MAX pieces. Returns 0 on error. */
#define WEFT_RESERVE_MAX 256u
static inline int weft_reserve(weft_writer *out, uint32_t pieces)
{
#if WEFT_FIFO
    if (out->cmd_free < pieces) {
        out->cmd_free = weft_wait_cmd_fifo(out->core, pieces);
        if (out->cmd_free < pieces)
            return 0;
    }
    out->cmd_free -= pieces;
#else
    size_t bytes = (size_t)pieces * WEFT_PIECE;
    if (out->left < bytes) {
        out->core->error = WEFT_ERR_NO_SPACE;
        return 0;
    }
    out->left -= bytes;
#endif
    return 1;
}

/* Write the next WEFT_PIECE bytes, low byte first. Their space must be reserved. */
static inline void weft_put(weft_writer *out, uint32_t piece)
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

/* Reserve space for a piece, and write it. */
static inline void weft_put_piece(weft_writer *out, uint32_t piece)
{
    if (weft_reserve(out, 1))
        weft_put(out, piece);
}

static inline void weft_put_zeros(weft_writer *out, uint32_t pieces)
{
    while (pieces--)
        weft_put_piece(out, 0);
}

#if !WEFT_DMA
/* The position in the result stream. */
typedef struct weft_reader {
#if WEFT_FIFO
    void *base;
    uint32_t word, left; /* the last word read, and how many of its bytes are unused */
#else
    const unsigned char *next;
#endif
} weft_reader;

static inline weft_reader weft_reader_open(weft_core *core)
{
    weft_reader in;
#if WEFT_FIFO
    in.base = core->base;
    in.word = in.left = 0;
#else
    in.next = core->results;
#endif
    return in;
}

/* Read `rows` rows of `padded` bytes, and store the first `bytes` bytes of each. */
static inline void weft_read_rows(weft_reader *in, unsigned char *row, ptrdiff_t stride,
                                  uint32_t rows, uint32_t bytes, uint32_t padded)
{
    uint32_t n;
    for (; rows > 0; rows--, row += stride) {
#if WEFT_FIFO
        for (n = 0; n < padded; n++, in->word >>= 8, in->left--) {
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
        in->next += padded;
#endif
    }
}

#if WEFT_FIFO
/* The same in 32-bit words. Every row must start at a word, in the stream and in memory. */
WEFT_INLINE void weft_read_row_words(const weft_reader *in, unsigned char *row, ptrdiff_t stride,
                                     uint32_t rows, uint32_t words, uint32_t padded)
{
    uint32_t n;
    for (; rows > 0; rows--, row += stride) {
        weft_word *word = (weft_word *)(void *)row;
        for (n = 0; n < words; n++)
            word[n] = WEFT_READ(in->base, offsetof(weft_t, result_fifo));
        for (; n < padded; n++)
            (void)WEFT_READ(in->base, offsetof(weft_t, result_fifo));
    }
}
#endif
#endif

#endif
