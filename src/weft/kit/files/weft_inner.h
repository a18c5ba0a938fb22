/* What the parts of the driver know of each other. */
#ifndef WEFT_INNER_H
#define WEFT_INNER_H

#include "weft.h"

enum { WEFT_A, WEFT_B, WEFT_PARAMETERS, WEFT_TABLE_ENTRIES, WEFT_C };
enum { WEFT_FEED_A = 1, WEFT_FEED_B = 2, WEFT_ACCUMULATE = 4, WEFT_KEEP = 8 };
enum { WEFT_PRELOAD = 64, WEFT_BROADCAST = 128 };
enum { WEFT_BY_COLUMN = WEFT_REQUANTIZE | WEFT_CLAMP, WEFT_FEED = 1, WEFT_MOST = 0xFFFF };

/* How a region lies on the chip and on the stream; docs/interfaces.md of Weft tells the story. */
typedef struct weft_geometry {
    uint32_t edge, depth, size; /* a word: ``depth`` values of ``size`` bytes on ``edge`` lines */
    uint32_t group, segments;   /* words in a stream word, stream words in a word */
    uint32_t page, pages;       /* words in a page; pages in all */
} weft_geometry;

static const weft_geometry weft_regions[] = WEFT_REGIONS;

static inline uint32_t weft_ceil(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

static inline uint32_t weft_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Values of k of the next job. */
static inline uint32_t weft_depth(const weft_core *core)
{
    return weft_least(core->job_k, core->product->k - core->k);
}

/* The product's k is more than a job's. */
static inline int weft_splits(const weft_core *core)
{
    return core->job_k < core->product->k;
}

/* More of k follows the next job: it has no results. */
static inline int weft_keeps(const weft_core *core)
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
                    ptrdiff_t value, uint32_t lines, uint32_t k); /* all panels of the lines */
#endif

/* weft.c */
int weft_failed(weft_core *core, int error); /* gives the error, after a reset */

/* weft_jobs.c */
int weft_fit(weft_core *core);               /* sets what is loaded and computed at once */
void weft_first(weft_core *core);            /* to the first job */
uint32_t weft_b_page(const weft_core *core);
void weft_job_header(const weft_core *core, uint32_t words[8], unsigned flags);
int weft_advance(weft_core *core); /* to the next job; 0 where there is none */
#if !WEFT_DMA
void weft_put_job(weft_core *core); /* the commands of the next job */
#endif
int weft_ours(const weft_core *core, uint32_t tag); /* of the next job, or of parts of its k */
int weft_verdict(uint32_t status);                  /* what the status of a job means */

/* weft_fifo.c, weft_stream.c or weft_dma.c */
#if WEFT_FIFO
/* Waits for room for so many words of commands, which it gives; 0 after an error. */
uint32_t weft_wait_room(weft_core *core, uint32_t words);
#endif
int weft_bound(weft_core *core);               /* lower load_ and job_ to what the bus takes */
int weft_begin(weft_core *core);
int weft_go_on(weft_core *core);               /* WEFT_BUSY, WEFT_OK at the end, or an error */
int weft_due(const weft_core *core);           /* a job is at work whose end is an interrupt */
int weft_load_lines(weft_core *core, uint32_t page, const void *data, ptrdiff_t line,
                    ptrdiff_t value, uint32_t lines, uint32_t k);
int weft_load_entries(weft_core *core, const uint8_t table[256]);

#endif
