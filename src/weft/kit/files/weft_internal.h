/* Declarations that the files of the driver share. */
#ifndef WEFT_INTERNAL_H
#define WEFT_INTERNAL_H

#include "weft.h"

enum { WEFT_A, WEFT_B, WEFT_PARAMETERS, WEFT_TABLE_ENTRIES, WEFT_C };
enum { WEFT_FEED_A = 1, WEFT_FEED_B = 2, WEFT_ACCUMULATE = 4, WEFT_KEEP = 8 };
enum { WEFT_PRELOAD = 64, WEFT_BROADCAST = 128 };
enum { WEFT_BY_COLUMN = WEFT_REQUANTIZE | WEFT_CLAMP, WEFT_FEED = 1, WEFT_FIELD_MAX = 0xFFFF };

/* Layout of a buffer of the core and of its load data; formats.md of the kit describes it. */
typedef struct weft_geometry {
    uint32_t edge, depth, size; /* a word has `depth` values of `size` bytes on `edge` lines */
    uint32_t group, segments;   /* words in a stream word, stream words in a word */
    uint32_t page, pages;       /* words in a page, pages in the buffer */
} weft_geometry;

static const weft_geometry weft_regions[] = WEFT_REGIONS;

static inline uint32_t weft_ceil(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

static inline uint32_t weft_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* K of the next job. */
static inline uint32_t weft_k_count(const weft_core *core)
{
    return weft_min(core->job_k, core->product->k - core->k);
}

/* Whether the product is split along K. */
static inline int weft_splits_k(const weft_core *core)
{
    return core->job_k < core->product->k;
}

/* Whether the next job is not the last one along K; then it keeps its sums and has no results. */
static inline int weft_more_k(const weft_core *core)
{
    return core->job_k < core->product->k - core->k;
}

static inline unsigned weft_result_size(unsigned finish)
{
    return finish & (WEFT_REQUANTIZE | WEFT_ROUND) ? WEFT_NARROW_BYTES : 4;
}

/* weft_pack.c */
uint32_t weft_panel_pages(uint32_t k);
size_t weft_panel_bytes(unsigned region, uint32_t words);
size_t weft_result_bytes(uint32_t m, uint32_t n, unsigned size);
void weft_load_header(uint32_t words[8], unsigned region, unsigned flags, uint32_t page,
                      uint32_t pitch, uint32_t panels, uint32_t panel_words);
void weft_put_columns(weft_core *core, const weft_column *columns, uint32_t n, uint32_t count);
void weft_put_bias(weft_core *core, const float *bias, uint32_t n, uint32_t count);
void weft_put_table(weft_core *core, const uint8_t table[256]);
#if !WEFT_DMA
void weft_put_header(weft_core *core, const uint32_t words[8]);
void weft_put_load(weft_core *core, unsigned region, uint32_t page, uint32_t pitch,
                   uint32_t panels, uint32_t panel_words);
void weft_unpack(weft_core *core);

/* weft_panel.c */
void weft_put_lines(weft_core *core, unsigned side, const void *data, ptrdiff_t line,
                    ptrdiff_t value, uint32_t lines, uint32_t k); /* all panels of an operand */
#endif

/* weft.c */
int weft_fail(weft_core *core, int error); /* resets the core, returns the error */

/* weft_jobs.c */
int weft_plan(weft_core *core); /* choose the sizes of blocks and jobs */
void weft_first_job(weft_core *core);
uint32_t weft_b_page(const weft_core *core);
void weft_job_header(const weft_core *core, uint32_t words[8], unsigned flags);
int weft_next_job(weft_core *core); /* returns 0 after the last job */
#if !WEFT_DMA
void weft_put_job(weft_core *core); /* send the commands of the next job */
#endif
/* Whether the tag belongs to the next job, or to an earlier part of its K. */
int weft_owns_tag(const weft_core *core, uint32_t tag);
int weft_job_error(uint32_t status); /* the error for the status of a job */

/* weft_fifo.c, weft_stream.c or weft_dma.c */
#if WEFT_FIFO
/* Wait until the command FIFO has space for `words` words. Returns the free words, 0 on error. */
uint32_t weft_wait_cmd_fifo(weft_core *core, uint32_t words);
#endif
int weft_limit_jobs(weft_core *core); /* reduce blocks and jobs to the limits of the bus */
int weft_prepare(weft_core *core);    /* check the product; nothing is sent */
int weft_poll(weft_core *core);       /* one step: WEFT_BUSY, WEFT_OK at the end, or an error */
int weft_awaits_irq(const weft_core *core); /* whether a job runs whose end raises an interrupt */
int weft_send_weights(weft_core *core, uint32_t page, const void *data, ptrdiff_t line,
                      ptrdiff_t value, uint32_t lines, uint32_t k);
int weft_send_table(weft_core *core, const uint8_t table[256]);

#endif
