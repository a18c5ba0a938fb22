/* Operators that move values or look them up: PAD, tables and copies. */
#ifndef NET_MOVE_H
#define NET_MOVE_H

#include <stdint.h>

typedef struct net_padding {
    int32_t input[4], before[4], output[4]; /* the last axis is adjacent in memory */
    int8_t value;
} net_padding;

static inline void net_pad(const net_padding *p, const int8_t *x, int8_t *y)
{
    int32_t at[4];
    for (at[0] = 0; at[0] < p->output[0]; at[0]++)
        for (at[1] = 0; at[1] < p->output[1]; at[1]++)
            for (at[2] = 0; at[2] < p->output[2]; at[2]++)
                for (at[3] = 0; at[3] < p->output[3]; at[3]++) {
                    int32_t place = 0, inside = 1;
                    for (int axis = 0; axis < 4; axis++) {
                        const int32_t index = at[axis] - p->before[axis];
                        inside = inside && index >= 0 && index < p->input[axis];
                        place = place * p->input[axis] + index;
                    }
                    *y++ = inside ? x[place] : p->value;
                }
}

/* Replace each value by the entry of its byte. */
static inline void net_look_up(const int8_t table[256], uint32_t size, const int8_t *x, int8_t *y)
{
    for (uint32_t n = 0; n < size; n++)
        y[n] = table[(uint8_t)x[n]];
}

static inline void net_copy(uint32_t size, const int8_t *x, int8_t *y)
{
    for (uint32_t n = 0; n < size; n++)
        y[n] = x[n];
}

#endif
