/* Maps in the memory of a network core: written by the host, and read by it. */
#ifndef NET_MAP_H
#define NET_MAP_H

#include "weft.h"

/* Pixel (y, x) of a map begins at vector `first + y * row_pitch + x * pitch`. */
typedef struct net_map {
    uint32_t first, pitch, row_pitch, height, width, channels;
} net_map;

/*
 * How a tensor becomes a map: a block of pixels becomes one pixel. Channel
 * (by * block_x + bx) * channels + c of pixel (y, x) of the map is the value at row
 * y * block_y - offset_y + by, column x * block_x - offset_x + bx, channel c; outside of the tensor
 * it is `fill`.
 */
typedef struct net_form {
    int32_t height, width, channels; /* of the tensor */
    int32_t block_y, block_x, offset_y, offset_x;
    int8_t fill;
} net_form;

static inline uint32_t net_vector(const net_map *map, uint32_t y, uint32_t x)
{
    return map->first + y * map->row_pitch + x * map->pitch;
}

/* Collect row `y` of a map from a tensor. */
static inline void net_arrange(const net_map *map, const net_form *form, uint32_t y,
                               const int8_t *x, int8_t *row)
{
    for (uint32_t pixel = 0; pixel < map->width; pixel++)
        for (int32_t by = 0; by < form->block_y; by++)
            for (int32_t bx = 0; bx < form->block_x; bx++) {
                const int32_t line = (int32_t)y * form->block_y - form->offset_y + by;
                const int32_t column = (int32_t)pixel * form->block_x - form->offset_x + bx;
                const int inside = line >= 0 && line < form->height && column >= 0
                                   && column < form->width;
                const int8_t *from
                    = x + (inside ? (line * form->width + column) * form->channels : 0);
                for (int32_t c = 0; c < form->channels; c++)
                    *row++ = inside ? from[c] : form->fill;
            }
}

/* Write a row of a map. */
static inline int net_write_row(weft_core *core, const net_map *map, uint32_t y, const int8_t *row)
{
    int error = WEFT_OK;
    if (map->channels <= 255 && map->pitch <= 255) {
        weft_layout layout;
        layout.run = map->channels;
        layout.pitch = map->pitch;
        layout.pixels = map->width;
        layout.row_step = 0;
        return weft_write(core, net_vector(map, y, 0), &layout, row, map->width * map->channels);
    }
    for (uint32_t x = 0; x < map->width && error == WEFT_OK; x++, row += map->channels)
        error = weft_write(core, net_vector(map, y, x), NULL, row, map->channels);
    return error;
}

/* Write a tensor to a map. `row` is memory for a row of the map; without a form it is not used. */
static inline int net_write_map(weft_core *core, const net_map *map, const net_form *form,
                                const int8_t *x, int8_t *row)
{
    int error = WEFT_OK;
    for (uint32_t y = 0; y < map->height && error == WEFT_OK; y++) {
        if (form) {
            net_arrange(map, form, y, x, row);
            error = net_write_row(core, map, y, row);
        } else
            error = net_write_row(core, map, y, x + y * map->width * map->channels);
    }
    return error;
}

/* Read a map to a tensor; at once if no byte lies between its pixels. */
static inline int net_read_map(weft_core *core, const net_map *map, int8_t *to)
{
    const uint32_t whole = map->channels == map->pitch * WEFT_DEPTH;
    const uint32_t reads = whole ? 1 : map->width, bytes = map->width / reads * map->channels;
    int error = WEFT_OK;
    for (uint32_t y = 0; y < map->height; y++)
        for (uint32_t x = 0; x < reads && error == WEFT_OK; x++, to += bytes)
            error = weft_read(core, net_vector(map, y, x), to, bytes);
    return error;
}

#endif
