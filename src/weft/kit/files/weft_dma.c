/* Submits descriptors: the core reads operands from memory and writes results to it. */
#include "weft_internal.h"

/* Word 12 of a LOAD descriptor: the order of the values in memory. */
enum { K_MAJOR = 0, K_MINOR = 1, PACKED = 2 };

#define BUSY (WEFT__STATUS__DMA_BUSY_bm | WEFT__STATUS__BUSY_bm)
#define ERRORS \
    (WEFT__IRQ_STATUS__FAILED_bm | WEFT__IRQ_STATUS__DMA_READ_ERROR_bm \
     | WEFT__IRQ_STATUS__DMA_WRITE_ERROR_bm | WEFT__IRQ_STATUS__BAD_DESCRIPTOR_bm \
     | WEFT__IRQ_STATUS__BAD_ADDRESS_bm)

static void submit(weft_core *core)
{
    WEFT_WRITE(core->base, offsetof(weft_t, doorbell), WEFT__DOORBELL__SUBMIT_bm);
    core->idle_polls = 0;
}

/* Write the descriptor registers from word `first` on. Words 13 to 15 stay 0, as after reset. */
static inline void write_words(const weft_core *core, uint32_t first, const uint32_t *words,
                            uint32_t count)
{
    uint32_t n;
    for (n = 0; n < count; n++)
        WEFT_WRITE(core->base, offsetof(weft_t, descriptor_0) + 4 * (first + n), words[n]);
}

/* Stride and order of an operand in memory; WEFT_ERR_STRIDE if the core does not support them. */
static int memory_order(const void *data, ptrdiff_t line, ptrdiff_t value, uint32_t *stride,
                        uint32_t *order)
{
    if (value == WEFT_VALUE_BYTES) {
        *order = K_MAJOR;
        *stride = (uint32_t)line;
    } else if (line == WEFT_VALUE_BYTES) {
        *order = K_MINOR;
        *stride = (uint32_t)value;
    } else {
        return WEFT_ERR_STRIDE;
    }
    return (WEFT_ADDRESS(data) | *stride) % WEFT_VALUE_BYTES ? WEFT_ERR_STRIDE : WEFT_OK;
}

/* WEFT_ERR_RANGE if `runs` runs of bytes, a stride apart, leave 32-bit addresses or the window. */
static int check_range(const weft_core *core, const void *data, uint32_t stride, uint32_t runs,
                       uint64_t bytes)
{
    uint32_t first = 0, last = 0xFFFFFFFFu, backward = stride >> 31;
    uint64_t span = (uint64_t)(runs - 1u) * (backward ? 0u - stride : stride);
    uint64_t start = WEFT_ADDRESS(data), end = start + bytes - 1u + (backward ? 0u : span);
#if WEFT_HAS_WINDOW
    first = WEFT_REGISTER(core, dma_base) & ~((uint32_t)WEFT_BYTES_IN - 1u);
    last = WEFT_REGISTER(core, dma_limit) | ((uint32_t)WEFT_BYTES_IN - 1u);
#else
    (void)core;
#endif
    return start < first + (backward ? span : 0u) || end > last ? WEFT_ERR_RANGE : WEFT_OK;
}

/* WEFT_OK if the core can read the operand, otherwise the error. */
static int check_operand(const weft_core *core, const void *data, ptrdiff_t line, ptrdiff_t value,
                         uint32_t lines, uint32_t k)
{
    uint32_t stride, order;
    int error = memory_order(data, line, value, &stride, &order);
    if (error)
        return error;
    if (order == K_MAJOR)
        return check_range(core, data, stride, lines, (uint64_t)k * WEFT_VALUE_BYTES);
    return check_range(core, data, stride, k, (uint64_t)lines * WEFT_VALUE_BYTES);
}

static void submit_load(weft_core *core, const uint32_t header[8], uint32_t address,
                        uint32_t stride, uint32_t lines, uint32_t k, uint32_t order)
{
    uint32_t source[5];
    source[0] = address;
    source[1] = stride;
    source[2] = lines;
    source[3] = k;
    source[4] = order;
    write_words(core, 0, header, 8);
    write_words(core, 8, source, 5);
    submit(core);
}

static void load_operand(weft_core *core, unsigned side, unsigned flags, uint32_t page,
                         uint32_t pitch, const void *data, ptrdiff_t line, ptrdiff_t value,
                         uint32_t lines, uint32_t k)
{
    uint32_t words[8], stride = 0, order = 0;
    (void)memory_order(data, line, value, &stride, &order);
    weft_load_header(words, side, flags, page, pitch,
                     weft_ceil(lines, side == WEFT_A ? WEFT_ROWS : WEFT_COLS),
                     weft_ceil(k, WEFT_DEPTH));
    submit_load(core, words, WEFT_ADDRESS(data), stride, lines, k, order);
}

/* With several blocks, a block is at most half a buffer: one is loaded while another is used. */
int weft_limit_jobs(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t rows, cols;
    if (core->block_m < p->m) {
        rows = weft_regions[WEFT_A].pages / core->pitch / 2;
        core->block_m = weft_min(core->block_m, (rows ? rows : 1) * WEFT_ROWS);
    }
    if (core->block_n < p->n && !p->weights) {
        cols = (weft_regions[WEFT_B].pages - core->b_free_page) / core->pitch / 2;
        core->block_n = weft_min(core->block_n, (cols ? cols : 1) * WEFT_COLS);
    }
    core->job_m = core->block_m;
    core->job_n = core->block_n;
    return WEFT_OK;
}

/* Pack the parameters and the bias of all columns into the caller's buffer. */
static int pack_parameters(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t count = weft_ceil(p->n, WEFT_COLS);
    if (!(p->epilogue & WEFT_BY_COLUMN || p->bias))
        return WEFT_OK;
    if (!core->buffer)
        return WEFT_ERR_NULL;
    if (WEFT_ADDRESS(core->buffer) % WEFT_BYTES_IN)
        return WEFT_ERR_STRIDE;
    core->buffer_used = 0;
    if (p->epilogue & WEFT_BY_COLUMN)
        weft_put_columns(core, p->columns, p->n, count);
    if (p->bias)
        weft_put_bias(core, p->bias, p->n, count);
    return core->error ? core->error : check_range(core, core->buffer, 0, 1, core->buffer_used);
}

int weft_prepare(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t size = weft_result_size(p->epilogue);
    uint32_t align = size == 4 ? WEFT_RESULT_ALIGN : WEFT_NARROW_RESULT_ALIGN;
    int error = check_operand(core, p->a, p->a_row_stride, p->a_k_stride, p->m, p->k);
    if (!error && !p->weights)
        error = check_operand(core, p->b, p->b_col_stride, p->b_k_stride, p->n, p->k);
    if (error)
        return error;
    if (WEFT_ADDRESS(p->c) % align || (uint32_t)p->c_row_stride % align)
        return WEFT_ERR_STRIDE;
    error = check_range(core, p->c, (uint32_t)p->c_row_stride, p->m,
                        (uint64_t)p->n * size);
    if (!error)
        error = pack_parameters(core);
    if (error)
        return error;
    core->error = WEFT_OK;
    core->next_stage = 0;
    core->oldest_tag = core->next_tag;
    core->jobs_done = WEFT_REGISTER(core, jobs_done);
    WEFT_WRITE(core->base, offsetof(weft_t, irq_status), ERRORS);
    WEFT_DMA_FLUSH();
    return WEFT_OK;
}

/* The stages of a job. A is loaded in two parts: the array starts when the first panel arrives. */
enum { PARAMETERS, BIAS, JOB, FIRST_A, ALL_B, REST_A, SUBMITTED, NEXT };

/* Load parameters or bias from the caller's buffer. */
static void load_packed(weft_core *core, unsigned region, uint32_t page, uint32_t pitch,
                        uint32_t words)
{
    const weft_product *p = core->product;
    uint32_t count = weft_ceil(core->width, WEFT_COLS), header[8];
    size_t offset = core->col / WEFT_COLS * weft_panel_bytes(region, words);
    if (region == WEFT_C && p->epilogue & WEFT_BY_COLUMN) /* the bias is after the parameters */
        offset += weft_ceil(p->n, WEFT_COLS)
                  * weft_panel_bytes(WEFT_PARAMETERS, weft_ceil(WEFT_COLS, WEFT_LANES));
    weft_load_header(header, region, 0, page, count > 1 ? pitch : 1, count, words);
    submit_load(core, header, WEFT_ADDRESS(core->buffer + offset), 0, count, 0, PACKED);
}

static void submit_job(weft_core *core, int new_a, int new_b)
{
    const weft_product *p = core->product;
    uint32_t words[10];
    const unsigned char *c = (unsigned char *)p->c + (ptrdiff_t)core->row * p->c_row_stride
                             + (size_t)core->col * weft_result_size(p->epilogue);
    weft_job_header(core, words, (new_a ? WEFT_FEED_A : 0) | (new_b ? WEFT_FEED_B : 0));
    words[8] = WEFT_ADDRESS(c);
    words[9] = (uint32_t)p->c_row_stride;
    write_words(core, 0, words, 10);
    submit(core);
    core->jobs_submitted += core->jobs_submitted < 0x8000u;
}

/* The first page of the next block; it alternates if the buffer has space for two blocks. */
static uint32_t next_page(uint32_t page, uint32_t first, uint32_t end, uint32_t pages)
{
    return page == first && first + 2 * pages <= end ? first + pages : first;
}

/* Load rows of A for the next job, from row `first` on: the first panel, or all others. */
static void load_a(weft_core *core, uint32_t first, uint32_t rows)
{
    const weft_product *p = core->product;
    const unsigned char *a = (const unsigned char *)p->a
                             + (ptrdiff_t)(core->row + first) * p->a_row_stride
                             + (ptrdiff_t)core->k * p->a_k_stride;
    load_operand(core, WEFT_A, WEFT_FEED, core->page_a + (first ? core->pitch : 0), core->pitch, a,
                 p->a_row_stride, p->a_k_stride, rows, weft_k_count(core));
}

/*
 * Submit at most one descriptor of the next job, and advance to the next stage that has one. A job
 * is submitted completely when its stages are over; only such a job can end without an error.
 */
static void submit_next(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t pitch = core->pitch, rows = core->height;
    int new_a = core->resident_row != core->row || weft_splits_k(core);
    int new_b = !p->weights && (core->resident_col != core->col || weft_splits_k(core));
    switch (core->next_stage++) {
    case PARAMETERS:
        if (new_a)
            core->page_a = next_page(core->page_a, 0, weft_regions[WEFT_A].pages,
                                     weft_ceil(core->block_m, WEFT_ROWS) * pitch);
        if (new_b)
            core->page_b = next_page(core->page_b, core->b_free_page, weft_regions[WEFT_B].pages,
                                     weft_ceil(core->block_n, WEFT_COLS) * pitch);
        if (p->epilogue & WEFT_BY_COLUMN && !weft_more_k(core))
            load_packed(core, WEFT_PARAMETERS, weft_b_page(core), pitch,
                        weft_ceil(WEFT_COLS, WEFT_LANES));
        break;
    case BIAS:
        if (p->bias && core->k == 0)
            load_packed(core, WEFT_C, 0, 1, 1);
        break;
    case JOB:
        submit_job(core, new_a, new_b);
        break;
    case FIRST_A:
        load_a(core, 0, weft_min(rows, WEFT_ROWS));
        break;
    case ALL_B:
        load_operand(core, WEFT_B, WEFT_FEED, core->page_b, pitch,
                     (const unsigned char *)p->b + (ptrdiff_t)core->col * p->b_col_stride
                         + (ptrdiff_t)core->k * p->b_k_stride,
                     p->b_col_stride, p->b_k_stride, core->width, weft_k_count(core));
        break;
    case REST_A:
        load_a(core, WEFT_ROWS, rows - WEFT_ROWS);
        break;
    default:
        break;
    }
    if (core->next_stage == FIRST_A && !new_a)
        core->next_stage = ALL_B;
    if (core->next_stage == ALL_B && !new_b)
        core->next_stage = REST_A;
    if (core->next_stage == REST_A && !(new_a && rows > WEFT_ROWS))
        core->next_stage = SUBMITTED;
    if (core->next_stage == SUBMITTED) {
        core->resident_row = core->row;
        core->resident_col = core->col;
        core->next_stage = weft_next_job(core) ? PARAMETERS : NEXT;
    }
}

/*
 * The next job and the jobs before it may be parts of one K, which end without an interrupt. An
 * older unfinished job has results, so its end raises one.
 */
int weft_awaits_irq(const weft_core *core)
{
    return (uint16_t)(core->next_tag - core->oldest_tag) > core->k / core->job_k;
}

/*
 * After irq_status.failed: the error if the failed job belongs to this product. The bit is cleared
 * before LAST_JOB is read, so a job that fails later sets it again.
 */
static int failed_job_error(weft_core *core)
{
    uint32_t last, tag, status, age;
    uint32_t next_submitted = core->next_stage > JOB && core->next_stage < NEXT;
    core->irq_events &= ~(uint32_t)WEFT__IRQ_STATUS__FAILED_bm;
    WEFT_WRITE(core->base, offsetof(weft_t, irq_status), WEFT__IRQ_STATUS__FAILED_bm);
    last = WEFT_REGISTER(core, last_job);
    tag = (last & WEFT__LAST_JOB__TAG_bm) >> WEFT__LAST_JOB__TAG_bp;
    status = (last & WEFT__LAST_JOB__STATUS_bm) >> WEFT__LAST_JOB__STATUS_bp;
    if (status == 0) /* a later job ended without an error; the tag of the failed one is unknown */
        return WEFT_ERR_ABORTED;
    age = (uint16_t)(core->next_tag + next_submitted - 1u - tag);
    return age < core->jobs_submitted ? weft_job_error(status) : WEFT_OK;
}

/* Update oldest_tag: the job in LAST_JOB and all jobs before it have ended. */
static void update_done(weft_core *core)
{
    uint32_t done = WEFT_REGISTER(core, jobs_done), tag;
    if (done != core->jobs_done) { /* otherwise LAST_JOB is older than this product */
        core->jobs_done = done;
        tag = (WEFT_REGISTER(core, last_job) & WEFT__LAST_JOB__TAG_bm) >> WEFT__LAST_JOB__TAG_bp;
        if ((uint16_t)(tag - core->oldest_tag) < (uint16_t)(core->next_tag - core->oldest_tag)) {
            core->oldest_tag = (uint16_t)(tag + 1u);
            core->idle_polls = 0;
        } else if (core->next_stage == NEXT && !(WEFT_REGISTER(core, status) & BUSY)) {
            /* A job of other software ended between the two reads, and hid ours: an idle core has
             * ended all jobs that it got. */
            core->oldest_tag = core->next_tag;
            core->idle_polls = 0;
        }
    }
    if (!weft_awaits_irq(core)) /* only parts of one K are unfinished; they have no results */
        core->oldest_tag = core->next_tag;
}

int weft_poll(weft_core *core)
{
    uint32_t desc_free = WEFT_REGISTER(core, desc_free);
    uint32_t events;
    int error;
    update_done(core);
    events = core->irq_events | WEFT_REGISTER(core, irq_status); /* after update_done() */
    if (events & WEFT__IRQ_STATUS__BAD_ADDRESS_bm)
        return WEFT_ERR_RANGE;
    if (events & WEFT__IRQ_STATUS__BAD_DESCRIPTOR_bm)
        return WEFT_ERR_STRIDE;
    if (events & (WEFT__IRQ_STATUS__DMA_READ_ERROR_bm | WEFT__IRQ_STATUS__DMA_WRITE_ERROR_bm))
        return WEFT_ERR_MEMORY;
    error = events & WEFT__IRQ_STATUS__FAILED_bm ? failed_job_error(core) : WEFT_OK;
    if (error)
        return error;
    for (; desc_free && core->next_stage < NEXT; desc_free--)
        submit_next(core);
    return core->next_stage < NEXT || core->oldest_tag != core->next_tag ? WEFT_BUSY : WEFT_OK;
}

/* Wait until the core has executed all submitted loads. */
static int wait_idle(weft_core *core)
{
    uint32_t polls, events;
    for (polls = 0; polls < core->poll_limit; polls++) {
        if (WEFT_REGISTER(core, status) & BUSY)
            continue;
        events = WEFT_REGISTER(core, irq_status);
        if (events & WEFT__IRQ_STATUS__BAD_ADDRESS_bm)
            return weft_fail(core, WEFT_ERR_RANGE);
        if (events & WEFT__IRQ_STATUS__BAD_DESCRIPTOR_bm)
            return weft_fail(core, WEFT_ERR_REJECTED);
        if (events & WEFT__IRQ_STATUS__DMA_READ_ERROR_bm)
            return weft_fail(core, WEFT_ERR_MEMORY);
        return WEFT_OK;
    }
    return weft_fail(core, WEFT_ERR_TIMEOUT);
}

int weft_send_weights(weft_core *core, uint32_t page, const void *data, ptrdiff_t line,
                      ptrdiff_t value, uint32_t lines, uint32_t k)
{
    int error = check_operand(core, data, line, value, lines, k);
    if (error)
        return error;
    WEFT_WRITE(core->base, offsetof(weft_t, irq_status), ERRORS);
    WEFT_DMA_FLUSH();
    load_operand(core, WEFT_B, 0, page, weft_panel_pages(k), data, line, value, lines, k);
    return wait_idle(core);
}

int weft_send_table(weft_core *core, const uint8_t table[256])
{
    uint32_t words[8];
    int error;
    if (!core->buffer)
        return WEFT_ERR_NULL;
    core->buffer_used = 0;
    core->error = WEFT_OK;
    weft_put_table(core, table);
    if (core->error)
        return core->error;
    if (WEFT_ADDRESS(core->buffer) % WEFT_BYTES_IN)
        return WEFT_ERR_STRIDE;
    error = check_range(core, core->buffer, 0, 1, core->buffer_used);
    if (error)
        return error;
    WEFT_WRITE(core->base, offsetof(weft_t, irq_status), ERRORS);
    WEFT_DMA_FLUSH();
    weft_load_header(words, WEFT_TABLE_ENTRIES, 0, 0, 1, 1, 256);
    submit_load(core, words, WEFT_ADDRESS(core->buffer), 0, 1, 0, PACKED);
    return wait_idle(core);
}
