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

/* The values of a panel: value d of line e of word w lies at data + e*line + w*word + d*value. */
typedef struct weft_source {
    const unsigned char *data;
    ptrdiff_t line, word, value;
    uint32_t lines, less; /* lines that are there in word 0; so many less in each word after it */
    uint32_t values;      /* that are there on a line, over all words */
    uint32_t words;
} weft_source;

extern const weft_geometry weft_regions[];

/* weft_pack.c */
uint32_t weft_ceil(uint32_t a, uint32_t b);
uint32_t weft_least(uint32_t a, uint32_t b);
uint32_t weft_panel_pages(uint32_t k);
size_t weft_panel_bytes(unsigned region, uint32_t words);
unsigned weft_result_size(unsigned finish);
size_t weft_result_bytes(uint32_t m, uint32_t n, unsigned size);
void weft_put_header(weft_core *core, const uint32_t words[8]);
void weft_put_panel(weft_core *core, unsigned region, const weft_source *source);
void weft_load_header(uint32_t words[8], unsigned region, unsigned flags, uint32_t page,
                      uint32_t pitch, uint32_t panels, uint32_t panel_words);
weft_source weft_lines(const void *data, ptrdiff_t line, ptrdiff_t value, uint32_t lines,
                       uint32_t k);
weft_source weft_columns(const weft_product *product, uint32_t panel);
weft_source weft_bias(const weft_product *product, uint32_t panel);
weft_source weft_table(const uint8_t *table);
#if !WEFT_DMA
unsigned weft_take(weft_core *core); /* the next byte of the results: each bus has one */
void weft_unpack(weft_core *core);
#endif

/* weft.c */
int weft_failed(weft_core *core, int error); /* gives the error, after a reset */

/* weft_jobs.c */
int weft_fit(weft_core *core);               /* sets what is loaded and computed at once */
uint32_t weft_height(const weft_core *core); /* of the next job */
uint32_t weft_width(const weft_core *core);
uint32_t weft_depth(const weft_core *core); /* its values of k */
int weft_splits(const weft_core *core);     /* the product's k is more than a job's */
int weft_keeps(const weft_core *core);      /* more of k follows it: it has no results */
uint32_t weft_b_page(const weft_core *core);
void weft_job_header(const weft_core *core, uint32_t words[8], unsigned flags);
int weft_advance(weft_core *core); /* to the next job; 0 where there is none */
#if !WEFT_DMA
void weft_put_job(weft_core *core); /* the commands of the next job */
#endif
int weft_ours(const weft_core *core, uint32_t tag); /* of the next job, or of parts of its k */
int weft_verdict(uint32_t status);                  /* what the status of a job means */

/* weft_windows.c, weft_stream.c or weft_dma.c */
void weft_put(weft_core *core, unsigned byte); /* the next byte of what is packed */
int weft_bound(weft_core *core);               /* lower load_ and job_ to what the bus takes */
int weft_begin(weft_core *core);
int weft_go_on(weft_core *core);               /* WEFT_BUSY, WEFT_OK at the end, or an error */
int weft_due(const weft_core *core);           /* a job is at work whose end is an interrupt */
int weft_load_lines(weft_core *core, uint32_t page, const void *data, ptrdiff_t line,
                    ptrdiff_t value, uint32_t lines, uint32_t k);
int weft_load_panel(weft_core *core, unsigned region, const weft_source *source);

#endif
