/* Commands and results through the FIFO ports of the register space. */
#include "weft_inner.h"

#define LEVEL(level, field) \
    (((level) & WEFT__RESULT_LEVEL__##field##_bm) >> WEFT__RESULT_LEVEL__##field##_bp)

uint32_t weft_wait_room(weft_core *core, uint32_t words)
{
    uint32_t polls, room = 0;
    for (polls = 0; room < words && !core->error; polls++) {
        room = WEFT_REGISTER(core, cmd_fifo_free);
        if (polls > core->limit)
            core->error = WEFT_TIMEOUT;
    }
    return core->error ? 0 : room;
}

/* The results of a job must fit the FIFO: then its end is seen before they are read. */
int weft_bound(weft_core *core)
{
    unsigned size = weft_result_size(core->product->finish);
    while (weft_result_bytes(core->job_m, core->job_n, size) > 4 * WEFT_RESULT_WORDS) {
        if (core->job_m > WEFT_ROWS)
            core->job_m = weft_ceil(core->job_m / 2, WEFT_ROWS) * WEFT_ROWS;
        else if (core->job_n > WEFT_COLS)
            core->job_n = weft_ceil(core->job_n / 2, WEFT_COLS) * WEFT_COLS;
        else /* a part of a panel */
            core->load_m = core->job_m = weft_ceil(core->job_m, 2);
    }
    return WEFT_OK;
}

/* Takes words of results that nobody waits for. */
static void discard(weft_core *core, uint32_t words)
{
    while (words--)
        (void)WEFT_READ(core->base, offsetof(weft_t, result_fifo));
}

/* Results that another product left would keep the core from taking commands. */
int weft_begin(weft_core *core)
{
    uint32_t words, polls;
    for (polls = 0; polls < core->limit; polls++) {
        words = LEVEL(WEFT_REGISTER(core, result_level), WORDS);
        if (!words)
            break;
        discard(core, words);
    }
    return WEFT_OK;
}

int weft_due(const weft_core *core)
{
    return core->active != 0;
}

int weft_go_on(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t level, words, status, tag;
    if (!core->active) {
        weft_put_job(core);
        core->active = !weft_keeps(core);
        if (!core->active)
            weft_advance(core);
        core->waited = 0;
        return core->error ? core->error : WEFT_BUSY;
    }
    level = WEFT_REGISTER(core, result_level);
    if (!LEVEL(level, COMPLETE))
        return WEFT_BUSY;
    words = LEVEL(level, WORDS);
    status = LEVEL(level, STATUS);
    tag = WEFT_REGISTER(core, result_tag) & WEFT__RESULT_TAG__TAG_bm;
    if (status && weft_ours(core, tag))
        return weft_verdict(status);
    if (tag != core->tag) { /* of a job that is not this product's */
        discard(core, words);
        return WEFT_BUSY;
    }
    if (4 * words != weft_result_bytes(core->height, core->width, weft_result_size(p->finish)))
        return WEFT_REJECTED;
    weft_unpack(core);
    core->active = core->waited = 0;
    return weft_advance(core) ? WEFT_BUSY : WEFT_OK;
}

int weft_load_lines(weft_core *core, uint32_t page, const void *data, ptrdiff_t line,
                    ptrdiff_t value, uint32_t lines, uint32_t k)
{
    weft_put_load(core, WEFT_B, page, weft_panel_pages(k), weft_ceil(lines, WEFT_COLS),
                  weft_ceil(k, WEFT_DEPTH));
    weft_put_lines(core, WEFT_B, data, line, value, lines, k);
    return core->error ? weft_failed(core, core->error) : WEFT_OK;
}

int weft_load_entries(weft_core *core, const uint8_t table[256])
{
    weft_put_load(core, WEFT_TABLE_ENTRIES, 0, 1, 1, 256);
    weft_put_table(core, table);
    return core->error ? weft_failed(core, core->error) : WEFT_OK;
}
