/* Commands and results through the FIFO ports of the register space. */
#include "weft_internal.h"

#define LEVEL(level, field) \
    (((level) & WEFT__RESULT_LEVEL__##field##_bm) >> WEFT__RESULT_LEVEL__##field##_bp)

uint32_t weft_wait_cmd_fifo(weft_core *core, uint32_t words)
{
    uint32_t polls, free_words = 0;
    for (polls = 0; free_words < words && !core->error; polls++) {
        free_words = WEFT_REGISTER(core, cmd_fifo_free);
        if (polls > core->poll_limit)
            core->error = WEFT_ERR_TIMEOUT;
    }
    return core->error ? 0 : free_words;
}

/* The results of a job must fit the FIFO, because they are read after the job has ended. */
int weft_limit_jobs(weft_core *core)
{
    unsigned size = weft_result_size(core->product->epilogue);
    while (weft_result_bytes(core->job_m, core->job_n, size) > 4 * WEFT_RESULT_WORDS) {
        if (core->job_m > WEFT_ROWS)
            core->job_m = weft_ceil(core->job_m / 2, WEFT_ROWS) * WEFT_ROWS;
        else if (core->job_n > WEFT_COLS)
            core->job_n = weft_ceil(core->job_n / 2, WEFT_COLS) * WEFT_COLS;
        else /* fewer rows than a panel has */
            core->block_m = core->job_m = weft_ceil(core->job_m, 2);
    }
    return WEFT_OK;
}

/* Read and drop words of results. */
static void discard(weft_core *core, uint32_t words)
{
    while (words--)
        (void)WEFT_READ(core->base, offsetof(weft_t, result_fifo));
}

/* Drop results of an earlier product: they would block the core. */
int weft_prepare(weft_core *core)
{
    uint32_t words, polls;
    for (polls = 0; polls < core->poll_limit; polls++) {
        words = LEVEL(WEFT_REGISTER(core, result_level), WORDS);
        if (!words)
            break;
        discard(core, words);
    }
    return WEFT_OK;
}

int weft_awaits_irq(const weft_core *core)
{
    return core->job_active != 0;
}

int weft_poll(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t level, words, status, tag;
    if (!core->job_active) {
        weft_put_job(core);
        core->job_active = !weft_more_k(core);
        if (!core->job_active)
            weft_next_job(core);
        core->idle_polls = 0;
        return core->error ? core->error : WEFT_BUSY;
    }
    level = WEFT_REGISTER(core, result_level);
    if (!LEVEL(level, COMPLETE))
        return WEFT_BUSY;
    words = LEVEL(level, WORDS);
    status = LEVEL(level, STATUS);
    tag = WEFT_REGISTER(core, result_tag) & WEFT__RESULT_TAG__TAG_bm;
    if (status && weft_owns_tag(core, tag))
        return weft_job_error(status);
    if (tag != core->next_tag) { /* results of a job that is not part of this product */
        discard(core, words);
        return WEFT_BUSY;
    }
    if (4 * words != weft_result_bytes(core->height, core->width, weft_result_size(p->epilogue)))
        return WEFT_ERR_REJECTED;
    weft_unpack(core);
    core->job_active = core->idle_polls = 0;
    return weft_next_job(core) ? WEFT_BUSY : WEFT_OK;
}

int weft_send_weights(weft_core *core, uint32_t page, const void *data, ptrdiff_t line,
                      ptrdiff_t value, uint32_t lines, uint32_t k)
{
    weft_put_load(core, WEFT_B, page, weft_panel_pages(k), weft_ceil(lines, WEFT_COLS),
                  weft_ceil(k, WEFT_DEPTH));
    weft_put_lines(core, WEFT_B, data, line, value, lines, k);
    return core->error ? weft_fail(core, core->error) : WEFT_OK;
}

int weft_send_table(weft_core *core, const uint8_t table[256])
{
    weft_put_load(core, WEFT_TABLE_ENTRIES, 0, 1, 1, 256);
    weft_put_table(core, table);
    return core->error ? weft_fail(core, core->error) : WEFT_OK;
}
