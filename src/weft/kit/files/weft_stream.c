/* Commands packed into memory that the caller's streams send; results out of memory. */
#include "weft_inner.h"

static size_t load_bytes(const weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t words = weft_ceil(core->job_k, WEFT_DEPTH), cols = weft_ceil(core->load_n, WEFT_COLS);
    size_t headers = 5 * (WEFT_BYTES_IN > 32 ? WEFT_BYTES_IN : 32);
    size_t all = headers + weft_ceil(core->load_m, WEFT_ROWS) * weft_panel_bytes(WEFT_A, words);
    if (!p->weights)
        all += cols * weft_panel_bytes(WEFT_B, words);
    if (p->finish & WEFT_BY_COLUMN)
        all += cols * weft_panel_bytes(WEFT_PARAMETERS, weft_ceil(WEFT_COLS, WEFT_LANES));
    if (p->bias)
        all += cols * weft_panel_bytes(WEFT_C, 1);
    return all;
}

/* A job and all that it loads must fit the caller's memory. */
int weft_bound(weft_core *core)
{
    unsigned size = weft_result_size(core->product->finish);
    while (load_bytes(core) > core->buffer_bytes
           || weft_result_bytes(core->load_m, core->load_n, size) > core->results_bytes) {
        if (core->load_m > WEFT_ROWS)
            core->load_m = weft_ceil(core->load_m / 2, WEFT_ROWS) * WEFT_ROWS;
        else if (core->load_n > WEFT_COLS)
            core->load_n = weft_ceil(core->load_n / 2, WEFT_COLS) * WEFT_COLS;
        else
            return WEFT_ROOM;
    }
    core->job_m = core->load_m;
    core->job_n = core->load_n;
    return WEFT_OK;
}

int weft_begin(weft_core *core)
{
    core->used = 0;
    return core->exchange && core->buffer && core->results ? WEFT_OK : WEFT_NULL;
}

/* Results are taken as soon as a job is sent: nothing is left for an interrupt. */
int weft_due(const weft_core *core)
{
    (void)core;
    return 0;
}

int weft_go_on(weft_core *core)
{
    unsigned status = 0;
    size_t due = weft_keeps(core) ? 0
                                  : weft_result_bytes(core->height, core->width,
                                                      weft_result_size(core->product->finish));
    int error;
    core->used = 0;
    weft_put_job(core);
    if (core->error)
        return core->error;
    error = core->exchange(core, core->buffer, core->used, core->results, due, &status);
    if (error)
        return error;
    if (status)
        return weft_verdict(status);
    if (due)
        weft_unpack(core);
    core->waited = 0;
    return weft_advance(core) ? WEFT_BUSY : WEFT_OK;
}

/* Sends what is in the buffer, which is answered by nothing. */
static int send(weft_core *core)
{
    unsigned status = 0;
    size_t used = core->used;
    int error = core->error;
    core->used = 0;
    core->error = WEFT_OK;
    if (error)
        return error;
    error = core->exchange(core, core->buffer, used, NULL, 0, &status);
    return error ? weft_failed(core, error) : WEFT_OK;
}

int weft_load_lines(weft_core *core, uint32_t page, const void *data, ptrdiff_t line,
                    ptrdiff_t value, uint32_t lines, uint32_t k)
{
    uint32_t first, pitch = weft_panel_pages(k);
    if (!core->exchange || !core->buffer)
        return WEFT_NULL;
    for (first = 0; first < lines; first += WEFT_COLS) { /* a load for each panel */
        int error;
        core->used = 0;
        weft_put_load(core, WEFT_B, page + first / WEFT_COLS * pitch, pitch, 1,
                      weft_ceil(k, WEFT_DEPTH));
        weft_put_lines(core, WEFT_B, (const unsigned char *)data + (ptrdiff_t)first * line, line,
                       value, weft_least(lines - first, WEFT_COLS), k);
        error = send(core);
        if (error)
            return error;
    }
    return WEFT_OK;
}

int weft_load_entries(weft_core *core, const uint8_t table[256])
{
    if (!core->exchange || !core->buffer)
        return WEFT_NULL;
    core->used = 0;
    weft_put_load(core, WEFT_TABLE_ENTRIES, 0, 1, 1, 256);
    weft_put_table(core, table);
    return send(core);
}
