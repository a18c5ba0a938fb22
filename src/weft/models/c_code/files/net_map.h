/* Maps in the memory of a network core: written by the host, and read by it. */
#ifndef NET_MAP_H
#define NET_MAP_H

#include "net_bytes.h"
#include "weft.h"

/*
 * Pixel (y, x) of a map begins at vector `first + y * row_pitch + x * pitch`. `row_step` is the
 * address step from the last pixel of a row to the next row.
 */
typedef struct net_map {
    uint32_t first, pitch, row_pitch, height, width, channels, row_step;
} net_map;

/*
 * How a tensor becomes a map: a block of pixels becomes one pixel. Channel
 * (by * block_x + bx) * channels + c of pixel (y, x) of the map is the value at row
 * y * block_y - offset_y + by, column x * block_x - offset_x + bx, channel c; outside of the tensor
 * it is `fill`. The pixels of a row from `begin` on and before `end` have no column outside. With
 * `planes` the values of the tensor have the order channel, row, column.
 */
typedef struct net_form {
    int32_t height, width, channels; /* of the tensor */
    int32_t block_y, block_x, offset_y, offset_x, begin, end;
    int8_t fill, planes;
} net_form;

static inline uint32_t net_vector(const net_map *map, uint32_t y, uint32_t x)
{
    return map->first + y * map->row_pitch + x * map->pitch;
}

/*
 * Copy `count` runs of a line of `length` values, from number `place` on, to places that are `step`
 * values apart; `fill` stands for values that the line does not have.
 */
static inline void net_arrange_edge(const int8_t *line, int32_t length, int8_t fill, int32_t place,
                                    int32_t run, int32_t count, int8_t *to, int32_t step)
{
    for (; count > 0; count--, to += step - run)
        for (const int32_t end = place + run; place < end; place++)
            *to++ = place >= 0 && place < length ? line[place] : fill;
}

/* Collect row `y` of a map from a tensor of planes. */
static inline void net_arrange_planes(const net_map *map, const net_form *form, uint32_t y,
                                      const int8_t *x, int8_t *row)
{
    const int32_t width = (int32_t)map->width, plane = form->height * form->width;
    const int32_t first = (int32_t)y * form->block_y - form->offset_y;
    for (int32_t n = 0; n < width; n++)
        for (int32_t line = first; line < first + form->block_y; line++)
            for (int32_t bx = 0; bx < form->block_x; bx++) {
                const int32_t column = n * form->block_x - form->offset_x + bx;
                const int inside = line >= 0 && line < form->height && column >= 0
                    && column < form->width;
                const int8_t *from = x + (inside ? line * form->width + column : 0);
                for (int32_t c = 0; c < form->channels; c++)
                    *row++ = inside ? from[c * plane] : form->fill;
            }
}

/* Collect row `y` of a map from a tensor. */
static inline void net_arrange(const net_map *map, const net_form *form, uint32_t y,
                               const int8_t *x, int8_t *row)
{
    const int32_t run = form->block_x * form->channels, step = form->block_y * run;
    const int32_t width = (int32_t)map->width, length = form->width * form->channels;
    const int32_t first = (int32_t)y * form->block_y - form->offset_y;
    const int32_t skipped = (form->begin * form->block_x - form->offset_x) * form->channels;
    int32_t begin = form->begin;
    if (form->planes) {
        net_arrange_planes(map, form, y, x, row);
        return;
    }
    if (run == 2 && step == 4 && first >= 0 && first + 1 < form->height) {
        const int8_t *line = x + first * length + skipped; /* blocks of 2 x 2 values */
        begin += net_interleave(row + 4 * begin, line, line + length, form->end - begin,
                                x + form->height * length);
    }
    for (int32_t line = first; line < first + form->block_y; line++, row += run) {
        const int inside = line >= 0 && line < form->height;
        const int8_t *from = inside ? x + line * length : x;
        const int32_t left = inside ? form->begin : width, right = inside ? form->end : width;
        net_arrange_edge(from, inside ? length : 0, form->fill, -form->offset_x * form->channels,
                         run, left, row, step);
        net_arrange_edge(from, length, form->fill, right * run - form->offset_x * form->channels,
                         run, width - right, row + right * step, step);
        if (inside)
            net_spread(row + begin * step, step, from + skipped + (begin - form->begin) * run, run,
                       form->end - begin);
    }
}

/* Write a map pixel by pixel: pixels that are too long for a layout. */
static inline int net_write_pixels(weft_core *core, const net_map *map, const net_form *form,
                                   const int8_t *x, int8_t *row)
{
    int error = WEFT_OK;
    for (uint32_t y = 0; y < map->height; y++) {
        const int8_t *from = form ? row : x + y * map->width * map->channels;
        if (form)
            net_arrange(map, form, y, x, row);
        for (uint32_t n = 0; n < map->width && error == WEFT_OK; n++, from += map->channels)
            error = weft_write(core, net_vector(map, y, n), NULL, from, map->channels);
    }
    return error;
}

/* Write rows of a map in one transfer; `row` is memory for a row and 3 bytes more. */
static inline int net_write_rows(weft_core *core, const net_map *map, const weft_layout *layout,
                                 const net_form *form, const int8_t *x, int8_t *row)
{
    const uint32_t line = map->width * map->channels;
    uint32_t kept = 0, whole; /* bytes of `row`, and those that make words */
    int error = weft_write_begin(core, map->first, layout, map->height * line);
    for (uint32_t y = 0; y < map->height && error == WEFT_OK; y++) {
        net_arrange(map, form, y, x, row + kept);
        kept += line;
        whole = y + 1 < map->height ? kept & ~(uint32_t)3 : kept;
        error = weft_write_more(core, row, whole);
        kept -= whole;
        net_append(row, row + whole, (int32_t)kept);
    }
    return error == WEFT_OK ? weft_write_end(core) : error;
}

/* Write a tensor to a map. Without a form it has the order of the map, and `row` is not used. */
static inline int net_write_map(weft_core *core, const net_map *map, const net_form *form,
                                const int8_t *x, int8_t *row)
{
    weft_layout layout;
    if (map->channels > 255 || map->pitch > 255)
        return net_write_pixels(core, map, form, x, row);
    layout.run = map->channels;
    layout.pitch = map->pitch;
    layout.pixels = map->width;
    layout.row_step = map->row_step;
    if (form)
        return net_write_rows(core, map, &layout, form, x, row);
    return weft_write(core, map->first, &layout, x, map->height * map->width * map->channels);
}

/* Read a map to a tensor: at once, or a row at once, if no byte lies between its pixels. */
static inline int net_read_map(weft_core *core, const net_map *map, int8_t *to)
{
    const int row = map->channels == map->pitch * WEFT_DEPTH;
    const int whole = row && map->row_pitch == map->width * map->pitch;
    const uint32_t rows = whole ? 1 : map->height, reads = row ? 1 : map->width;
    const uint32_t bytes = map->height / rows * (map->width / reads) * map->channels;
    int error = WEFT_OK;
    for (uint32_t y = 0; y < rows; y++)
        for (uint32_t x = 0; x < reads && error == WEFT_OK; x++, to += bytes)
            error = weft_read(core, net_vector(map, y, x), to, bytes);
    return error;
}

/* Read a map to a tensor of planes; `row` is memory for a pixel. */
static inline int net_read_planes(weft_core *core, const net_map *map, int8_t *to, int8_t *row)
{
    const uint32_t plane = map->height * map->width;
    int error = WEFT_OK;
    for (uint32_t n = 0; n < plane && error == WEFT_OK; n++) {
        error = weft_read(core, net_vector(map, n / map->width, n % map->width), row,
                          map->channels);
        for (uint32_t c = 0; c < map->channels && error == WEFT_OK; c++)
            to[c * plane + n] = row[c];
    }
    return error;
}

#endif
