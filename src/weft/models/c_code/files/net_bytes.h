/* Copies of bytes, by words where they are aligned. */
#ifndef NET_BYTES_H
#define NET_BYTES_H

#include <stdint.h>

#ifdef __GNUC__
typedef uint32_t net_word __attribute__((may_alias));
#endif

/* Append values to a row; the new end of the row. */
static inline int8_t *net_append(int8_t *a, const int8_t *from, int32_t count)
{
#ifdef __GNUC__
    if (((uintptr_t)a | (uintptr_t)from) % 4 == 0)
        for (; count >= 4; count -= 4, a += 4, from += 4)
            *(net_word *)(void *)a = *(const net_word *)(const void *)from;
#endif
    for (; count >= 4; count -= 4, a += 4, from += 4)
        a[0] = from[0], a[1] = from[1], a[2] = from[2], a[3] = from[3];
    for (; count > 0; count--)
        *a++ = *from++;
    return a;
}

/* Copy `count` runs of adjacent values: to places that are `step` values apart. */
static inline void net_spread(int8_t *to, int32_t step, const int8_t *from, int32_t run,
                              int32_t count)
{
    for (; count > 0; count--, to += step, from += run)
        net_append(to, from, run);
}

#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Reads words from any address by aligned accesses, a word ahead. */
typedef struct net_reader {
    const net_word *next;
    uint32_t word, shift; /* the word before `next`; bits of it that lie before the address */
} net_reader;

static inline net_reader net_read_from(const int8_t *from)
{
    net_reader r;
    uint32_t bits;
    r.shift = (uint32_t)((uintptr_t)from & 3) * 8;
    r.word = 0;
    for (bits = r.shift; bits < 32; bits += 8)
        r.word |= (uint32_t)(uint8_t)*from++ << bits;
    r.next = (const net_word *)(const void *)from;
    return r;
}

static inline uint32_t net_read_next(net_reader *r)
{
    const uint32_t next = *r->next++, word = r->word >> r->shift | next << 1 << (31 - r->shift);
    r->word = next;
    return word;
}
#endif

/*
 * Interleave two lines: 2 values of `a`, 2 values of `b`, and so on. `to` is aligned. Nothing is
 * read from `end` on, where the tensor of both lines ends; `a` lies before `b`. Returns how many of
 * `count` groups of 4 values were written: all but a few, or none.
 */
static inline int32_t net_interleave(int8_t *to, const int8_t *a, const int8_t *b, int32_t count,
                                     const int8_t *end)
{
    int32_t done = 0;
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if ((uintptr_t)to % 4 == 0 && count >= 4) {
        net_reader above = net_read_from(a), below = net_read_from(b);
        if (end - b < 2 * count + 4) /* the reader is up to 4 values ahead */
            count = (int32_t)(end - b) / 2 - 2;
        for (net_word *word = (net_word *)(void *)to; done + 2 <= count; done += 2, word += 2) {
            const uint32_t x = net_read_next(&above), y = net_read_next(&below);
            word[0] = (x & 0xFFFF) | y << 16;
            word[1] = x >> 16 | (y & 0xFFFF0000);
        }
    }
#else
    (void)to, (void)a, (void)b, (void)count, (void)end;
#endif
    return done;
}

#endif
