/* Splits a product into jobs, and packs the commands of a job. */
#include "weft_internal.h"

/*
 * Choose the blocks that are loaded together, as large as the buffers allow, and the jobs, within
 * the limits of the bus. If a panel does not fit, the product is split along K: each job is one
 * tile and a part of K, small enough for two parts in the buffers, and passes its sums on.
 */
int weft_plan(weft_core *core)
{
    const weft_product *p = core->product;
    const weft_geometry *a = &weft_regions[WEFT_A];
    uint32_t free = weft_regions[WEFT_B].pages - core->b_free_page;
    uint32_t available = p->weights ? a->pages : weft_min(a->pages, free);
    uint32_t pitch = weft_panel_pages(p->k), rows, cols;
    int error;
    core->job_k = p->k;
    if (available == 0)
        return WEFT_ERR_NO_SPACE;
    if (pitch > available) {
        pitch = available > 1 ? available / 2 : 1;
        core->job_k = pitch * a->page * a->depth;
    }
    rows = weft_splits_k(core) ? 1 : a->pages / pitch;
    cols = weft_splits_k(core) ? 1 : free / pitch;
    if (p->bias)
        cols = weft_min(p->weights ? WEFT_FIELD_MAX : cols, weft_regions[WEFT_C].pages);
    else if (p->weights)
        cols = WEFT_FIELD_MAX;
    core->pitch = pitch;
    core->page_a = 0;
    core->page_b = core->b_free_page;
    core->block_m = weft_min(p->m, weft_min(rows, WEFT_FIELD_MAX / WEFT_ROWS) * WEFT_ROWS);
    core->block_n = weft_min(p->n, weft_min(cols, WEFT_FIELD_MAX / WEFT_COLS) * WEFT_COLS);
    core->job_m = core->block_m;
    core->job_n = core->block_n;
    error = weft_limit_jobs(core);
    if (core->block_m < p->m)
        core->block_m = core->block_m / core->job_m * core->job_m;
    if (core->block_n < p->n)
        core->block_n = core->block_n / core->job_n * core->job_n;
    return error;
}

/* Set the size of the next job. */
static void set_job_size(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t rows = weft_min(core->block_row + core->block_m, p->m) - core->row;
    uint32_t cols = weft_min(core->block_col + core->block_n, p->n) - core->col;
    core->height = weft_min(core->job_m, rows);
    core->width = weft_min(core->job_n, cols);
}

void weft_first_job(weft_core *core)
{
    core->row = core->col = core->k = 0;
    core->block_row = core->block_col = 0;
    set_job_size(core);
}

/* An earlier part of the same K has no results; it ends with a packet only if it fails. */
int weft_owns_tag(const weft_core *core, uint32_t tag)
{
    return (uint16_t)(core->next_tag - tag) <= core->k / core->job_k;
}

int weft_job_error(uint32_t status)
{
    if (status == 0)
        return WEFT_OK;
    return status & 2 ? WEFT_ERR_REJECTED : status & 1 ? WEFT_ERR_ABORTED : WEFT_ERR_MEMORY;
}

/* The order of jobs: parts of K, rows of the block, columns of the block, then the next block. */
int weft_next_job(weft_core *core)
{
    const weft_product *p = core->product;
    core->next_tag++;
    if (weft_more_k(core)) {
        core->k += core->job_k;
        return 1;
    }
    core->k = 0;
    core->row += core->height;
    if (core->row >= weft_min(core->block_row + core->block_m, p->m)) {
        core->row = core->block_row;
        core->col += core->width;
        if (core->col >= weft_min(core->block_col + core->block_n, p->n)) {
            core->col = core->block_col;
            core->row = core->block_row += core->block_m;
        }
        if (core->row >= p->m) {
            core->row = core->block_row = 0;
            core->col = core->block_col += core->block_n;
        }
        if (core->col >= p->n)
            return 0;
    }
    set_job_size(core);
    return 1;
}

uint32_t weft_b_page(const weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t start = p->weights ? 0 : core->block_col;
    uint32_t page = p->weights ? p->weights->page : core->page_b;
    return page + (core->col - start) / WEFT_COLS * core->pitch;
}

void weft_job_header(const weft_core *core, uint32_t words[8], unsigned flags)
{
    const weft_product *p = core->product;
    uint32_t m = core->height, n = core->width, pitch = core->pitch;
    uint32_t rows = weft_ceil(m, WEFT_ROWS), cols = weft_ceil(n, WEFT_COLS);
    uint32_t page = core->page_a + (core->row - core->block_row) / WEFT_ROWS * pitch;
    int starts = p->bias && core->k == 0;
    flags |= weft_more_k(core) ? WEFT_KEEP : p->epilogue;
    flags |= core->k ? WEFT_ACCUMULATE : starts ? WEFT_PRELOAD | WEFT_BROADCAST : 0u;
    words[0] = 1u | WEFT_COMMANDS_VERSION << 8 | (uint32_t)core->next_tag << 16;
    words[1] = flags | m << 16;
    words[2] = weft_k_count(core);
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
    uint32_t k = weft_k_count(core);
    uint32_t panels = weft_ceil(lines, side == WEFT_A ? WEFT_ROWS : WEFT_COLS);
    weft_put_load(core, side, page, core->pitch, panels, weft_ceil(k, WEFT_DEPTH));
    weft_put_lines(core, side, (const unsigned char *)data + (ptrdiff_t)core->k * value, line,
                   value, lines, k);
}

void weft_put_job(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t row = core->block_row, col = core->block_col, words[8];
    uint32_t count = weft_ceil(core->width, WEFT_COLS);
    if (!p->weights && (core->resident_col != col || weft_splits_k(core)))
        put_lines(core, WEFT_B, core->page_b,
                  (const unsigned char *)p->b + (ptrdiff_t)col * p->b_col_stride,
                  p->b_col_stride, p->b_k_stride, weft_min(core->block_n, p->n - col));
    if (core->resident_row != row || weft_splits_k(core))
        put_lines(core, WEFT_A, core->page_a,
                  (const unsigned char *)p->a + (ptrdiff_t)row * p->a_row_stride,
                  p->a_row_stride, p->a_k_stride, weft_min(core->block_m, p->m - row));
    core->resident_row = row;
    core->resident_col = col;
    if (p->epilogue & WEFT_BY_COLUMN && !weft_more_k(core)) {
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
