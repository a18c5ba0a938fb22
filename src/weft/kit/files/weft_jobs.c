/* The splitting of products into jobs, and the commands of a job. */
#include "weft_inner.h"

/*
 * What is loaded and computed at once: all that fits the chip, and what the bus makes of it. Where
 * a panel does not fit, jobs of a tile and of a part of k, two of which do, hand on their sums.
 */
int weft_fit(weft_core *core)
{
    const weft_product *p = core->product;
    const weft_geometry *a = &weft_regions[WEFT_A];
    uint32_t free = weft_regions[WEFT_B].pages - core->b_next;
    uint32_t most = p->weights ? a->pages : weft_least(a->pages, free);
    uint32_t pitch = weft_panel_pages(p->k), rows, cols;
    int error;
    core->job_k = p->k;
    if (most == 0)
        return WEFT_ROOM;
    if (pitch > most) {
        pitch = most > 1 ? most / 2 : 1;
        core->job_k = pitch * a->page * a->depth;
    }
    rows = weft_splits(core) ? 1 : a->pages / pitch;
    cols = weft_splits(core) ? 1 : free / pitch;
    if (p->bias)
        cols = weft_least(p->weights ? WEFT_MOST : cols, weft_regions[WEFT_C].pages);
    else if (p->weights)
        cols = WEFT_MOST;
    core->pitch = pitch;
    core->page_a = 0;
    core->page_b = core->b_next;
    core->load_m = weft_least(p->m, weft_least(rows, WEFT_MOST / WEFT_ROWS) * WEFT_ROWS);
    core->load_n = weft_least(p->n, weft_least(cols, WEFT_MOST / WEFT_COLS) * WEFT_COLS);
    core->job_m = core->load_m;
    core->job_n = core->load_n;
    error = weft_bound(core);
    if (core->load_m < p->m)
        core->load_m = core->load_m / core->job_m * core->job_m;
    if (core->load_n < p->n)
        core->load_n = core->load_n / core->job_n * core->job_n;
    return error;
}

/* How much of what is loaded the next job computes. */
static void measure(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t rows = weft_least(core->first_row + core->load_m, p->m) - core->row;
    uint32_t cols = weft_least(core->first_col + core->load_n, p->n) - core->col;
    core->height = weft_least(core->job_m, rows);
    core->width = weft_least(core->job_n, cols);
}

void weft_first(weft_core *core)
{
    core->row = core->col = core->k = 0;
    core->first_row = core->first_col = 0;
    measure(core);
}

/* A part that hands on its sums has no results, but it tells where it is rejected or aborted. */
int weft_ours(const weft_core *core, uint32_t tag)
{
    return (uint16_t)(core->tag - tag) <= core->k / core->job_k;
}

int weft_verdict(uint32_t status)
{
    if (status == 0)
        return WEFT_OK;
    return status & 2 ? WEFT_REJECTED : status & 1 ? WEFT_ABORTED : WEFT_MEMORY;
}

/* The rest of k; rows of what is loaded, then its columns, then the next to load. */
int weft_advance(weft_core *core)
{
    const weft_product *p = core->product;
    core->tag++;
    if (weft_keeps(core)) {
        core->k += core->job_k;
        return 1;
    }
    core->k = 0;
    core->row += core->height;
    if (core->row >= weft_least(core->first_row + core->load_m, p->m)) {
        core->row = core->first_row;
        core->col += core->width;
        if (core->col >= weft_least(core->first_col + core->load_n, p->n)) {
            core->col = core->first_col;
            core->row = core->first_row += core->load_m;
        }
        if (core->row >= p->m) {
            core->row = core->first_row = 0;
            core->col = core->first_col += core->load_n;
        }
        if (core->col >= p->n)
            return 0;
    }
    measure(core);
    return 1;
}

uint32_t weft_b_page(const weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t start = p->weights ? 0 : core->first_col;
    uint32_t page = p->weights ? p->weights->page : core->page_b;
    return page + (core->col - start) / WEFT_COLS * core->pitch;
}

void weft_job_header(const weft_core *core, uint32_t words[8], unsigned flags)
{
    const weft_product *p = core->product;
    uint32_t m = core->height, n = core->width, pitch = core->pitch;
    uint32_t rows = weft_ceil(m, WEFT_ROWS), cols = weft_ceil(n, WEFT_COLS);
    uint32_t page = core->page_a + (core->row - core->first_row) / WEFT_ROWS * pitch;
    int starts = p->bias && core->k == 0;
    flags |= weft_keeps(core) ? WEFT_KEEP : p->finish;
    flags |= core->k ? WEFT_ACCUMULATE : starts ? WEFT_PRELOAD | WEFT_BROADCAST : 0u;
    words[0] = 1u | WEFT_COMMANDS_VERSION << 8 | (uint32_t)core->tag << 16;
    words[1] = flags | m << 16;
    words[2] = weft_depth(core);
    words[3] = n | page << 16;
    words[4] = pitch | rows * pitch << 16;
    words[5] = weft_b_page(core) | pitch << 16;
    words[6] = cols * pitch;
    words[7] = starts ? 1u | cols << 16 : 0;
}

#if !WEFT_DMA
static void put_lines(weft_core *core, unsigned side, uint32_t page, const void *data,
                      ptrdiff_t line, ptrdiff_t value, uint32_t lines)
{
    uint32_t k = weft_depth(core);
    uint32_t panels = weft_ceil(lines, side == WEFT_A ? WEFT_ROWS : WEFT_COLS);
    weft_put_load(core, side, page, core->pitch, panels, weft_ceil(k, WEFT_DEPTH));
    weft_put_lines(core, side, (const unsigned char *)data + (ptrdiff_t)core->k * value, line,
                   value, lines, k);
}

void weft_put_job(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t row = core->first_row, col = core->first_col, words[8];
    uint32_t count = weft_ceil(core->width, WEFT_COLS);
    if (!p->weights && (core->loaded_col != col || weft_splits(core)))
        put_lines(core, WEFT_B, core->page_b,
                  (const unsigned char *)p->b + (ptrdiff_t)col * p->b_col, p->b_col, p->b_k,
                  weft_least(core->load_n, p->n - col));
    if (core->loaded_row != row || weft_splits(core))
        put_lines(core, WEFT_A, core->page_a,
                  (const unsigned char *)p->a + (ptrdiff_t)row * p->a_row, p->a_row, p->a_k,
                  weft_least(core->load_m, p->m - row));
    core->loaded_row = row;
    core->loaded_col = col;
    if (p->finish & WEFT_BY_COLUMN && !weft_keeps(core)) {
        weft_put_load(core, WEFT_PARAMETERS, weft_b_page(core), count > 1 ? core->pitch : 1,
                      count, weft_ceil(WEFT_COLS, WEFT_LANES));
        weft_put_columns(core, p->columns + core->col, p->n - core->col, count);
    }
    if (p->bias && core->k == 0) {
        weft_put_load(core, WEFT_C, 0, 1, count, 1);
        weft_put_bias(core, p->bias + core->col, p->n - core->col, count);
    }
    weft_job_header(core, words, 0);
    weft_put_header(core, words);
}
#endif
