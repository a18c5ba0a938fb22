/* Commands and results in memory, which the caller's function `exchange` sends and receives. */
#include "weft_internal.h"

/* Bytes of a job and of all its loads. */
static size_t command_bytes(const weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t words = weft_ceil(core->job_k, WEFT_DEPTH), cols = weft_ceil(core->block_n, WEFT_COLS);
    size_t headers = 5 * (WEFT_BYTES_IN > 32 ? WEFT_BYTES_IN : 32);
    size_t all = headers + weft_ceil(core->block_m, WEFT_ROWS) * weft_panel_bytes(WEFT_A, words);
    if (!p->weights)
        all += cols * weft_panel_bytes(WEFT_B, words);
    if (p->epilogue & WEFT_BY_COLUMN)
        all += cols * weft_panel_bytes(WEFT_PARAMETERS, weft_ceil(WEFT_COLS, WEFT_LANES));
    if (p->bias)
        all += cols * weft_panel_bytes(WEFT_C, 1);
    return all;
}

/* The commands and the results of a job must fit the caller's memory. */
int weft_limit_jobs(weft_core *core)
{
    unsigned size = weft_result_size(core->product->epilogue);
    while (command_bytes(core) > core->buffer_bytes
           || weft_result_bytes(core->block_m, core->block_n, size) > core->results_bytes) {
        if (core->block_m > WEFT_ROWS)
            core->block_m = weft_ceil(core->block_m / 2, WEFT_ROWS) * WEFT_ROWS;
        else if (core->block_n > WEFT_COLS)
            core->block_n = weft_ceil(core->block_n / 2, WEFT_COLS) * WEFT_COLS;
        else
            return WEFT_ERR_NO_SPACE;
    }
    core->job_m = core->block_m;
    core->job_n = core->block_n;
    return WEFT_OK;
}

int weft_prepare(weft_core *core)
{
    core->buffer_used = 0;
    return core->exchange && core->buffer && core->results ? WEFT_OK : WEFT_ERR_NULL;
}

/* weft_poll() computes a whole job, so the driver never waits for an interrupt. */
int weft_awaits_irq(const weft_core *core)
{
    (void)core;
    return 0;
}

int weft_poll(weft_core *core)
{
    unsigned status = 0;
    size_t bytes = weft_more_k(core) ? 0
                                     : weft_result_bytes(core->height, core->width,
                                                         weft_result_size(core->product->epilogue));
    int error;
    core->buffer_used = 0;
    weft_put_job(core);
    if (core->error)
        return core->error;
    error = core->exchange(core, core->buffer, core->buffer_used, core->results, bytes, &status);
    if (error)
        return error;
    if (status)
        return weft_job_error(status);
    if (bytes)
        weft_unpack(core);
    core->idle_polls = 0;
    return weft_next_job(core) ? WEFT_BUSY : WEFT_OK;
}

/* Send the contents of the buffer, which have no results. */
static int send(weft_core *core)
{
    unsigned status = 0;
    size_t used = core->buffer_used;
    int error = core->error;
    core->buffer_used = 0;
    core->error = WEFT_OK;
    if (error)
        return error;
    error = core->exchange(core, core->buffer, used, NULL, 0, &status);
    return error ? weft_fail(core, error) : WEFT_OK;
}

int weft_send_weights(weft_core *core, uint32_t page, const void *data, ptrdiff_t line,
                      ptrdiff_t value, uint32_t lines, uint32_t k)
{
    uint32_t first, pitch = weft_panel_pages(k);
    if (!core->exchange || !core->buffer)
        return WEFT_ERR_NULL;
    for (first = 0; first < lines; first += WEFT_COLS) { /* one load for each panel */
        int error;
        core->buffer_used = 0;
        weft_put_load(core, WEFT_B, page + first / WEFT_COLS * pitch, pitch, 1,
                      weft_ceil(k, WEFT_DEPTH));
        weft_put_lines(core, WEFT_B, (const unsigned char *)data + (ptrdiff_t)first * line, line,
                       value, weft_min(lines - first, WEFT_COLS), k);
        error = send(core);
        if (error)
            return error;
    }
    return WEFT_OK;
}

int weft_send_table(weft_core *core, const uint8_t table[256])
{
    if (!core->exchange || !core->buffer)
        return WEFT_ERR_NULL;
    core->buffer_used = 0;
    weft_put_load(core, WEFT_TABLE_ENTRIES, 0, 1, 1, 256);
    weft_put_table(core, table);
    return send(core);
}
