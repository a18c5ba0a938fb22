/* Descriptors: the core fetches operands from memory, and puts its results there. */
#include "weft_inner.h"

/* Word 12 of a LOAD descriptor: the order of the values in memory. */
enum { K_MAJOR = 0, K_MINOR = 1, PACKED = 2 };

#define ERRORS \
    (WEFT__IRQ_STATUS__FAILED_bm | WEFT__IRQ_STATUS__DMA_READ_ERROR_bm \
     | WEFT__IRQ_STATUS__DMA_WRITE_ERROR_bm | WEFT__IRQ_STATUS__BAD_DESCRIPTOR_bm \
     | WEFT__IRQ_STATUS__BAD_ADDRESS_bm)

static void submit(weft_core *core)
{
    WEFT_WRITE(core->base, offsetof(weft_t, doorbell), WEFT__DOORBELL__SUBMIT_bm);
    core->waited = 0;
}

/* Words of a descriptor from `first` on; 13 to 15 are 0 since the reset. */
static inline void describe(const weft_core *core, uint32_t first, const uint32_t *words,
                            uint32_t count)
{
    uint32_t n;
    for (n = 0; n < count; n++)
        WEFT_WRITE(core->base, offsetof(weft_t, descriptor_0) + 4 * (first + n), words[n]);
}

/* How such lines lie in memory: a stride and an order; WEFT_STRIDE where the core cannot. */
static int lie(const void *data, ptrdiff_t line, ptrdiff_t value, uint32_t *stride,
               uint32_t *order)
{
    if (value == WEFT_VALUE_BYTES) {
        *order = K_MAJOR;
        *stride = (uint32_t)line;
    } else if (line == WEFT_VALUE_BYTES) {
        *order = K_MINOR;
        *stride = (uint32_t)value;
    } else {
        return WEFT_STRIDE;
    }
    return (WEFT_ADDRESS(data) | *stride) % WEFT_VALUE_BYTES ? WEFT_STRIDE : WEFT_OK;
}

/* WEFT_RANGE where so many runs of bytes, a stride apart, leave the core's addresses or window. */
static int reach(const weft_core *core, const void *data, uint32_t stride, uint32_t runs,
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
    return start < first + (backward ? span : 0u) || end > last ? WEFT_RANGE : WEFT_OK;
}

/* Whether the core can fetch an operand that lies so. */
static int fetches(const weft_core *core, const void *data, ptrdiff_t line, ptrdiff_t value,
                   uint32_t lines, uint32_t k)
{
    uint32_t stride, order;
    int error = lie(data, line, value, &stride, &order);
    if (error)
        return error;
    if (order == K_MAJOR)
        return reach(core, data, stride, lines, (uint64_t)k * WEFT_VALUE_BYTES);
    return reach(core, data, stride, k, (uint64_t)lines * WEFT_VALUE_BYTES);
}

static void fetch(weft_core *core, const uint32_t header[8], uint32_t address, uint32_t stride,
                  uint32_t lines, uint32_t k, uint32_t order)
{
    uint32_t more[5];
    more[0] = address;
    more[1] = stride;
    more[2] = lines;
    more[3] = k;
    more[4] = order;
    describe(core, 0, header, 8);
    describe(core, 8, more, 5);
    submit(core);
}

static void load(weft_core *core, unsigned side, unsigned flags, uint32_t page, uint32_t pitch,
                 const void *data, ptrdiff_t line, ptrdiff_t value, uint32_t lines, uint32_t k)
{
    uint32_t words[8], stride = 0, order = 0;
    (void)lie(data, line, value, &stride, &order);
    weft_load_header(words, side, flags, page, pitch,
                     weft_ceil(lines, side == WEFT_A ? WEFT_ROWS : WEFT_COLS),
                     weft_ceil(k, WEFT_DEPTH));
    fetch(core, words, WEFT_ADDRESS(data), stride, lines, k, order);
}

/* Several loads need places of their own, so that one moves while another is worked on. */
int weft_bound(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t rows, cols;
    if (core->load_m < p->m) {
        rows = weft_regions[WEFT_A].pages / core->pitch / 2;
        core->load_m = weft_least(core->load_m, (rows ? rows : 1) * WEFT_ROWS);
    }
    if (core->load_n < p->n && !p->weights) {
        cols = (weft_regions[WEFT_B].pages - core->b_next) / core->pitch / 2;
        core->load_n = weft_least(core->load_n, (cols ? cols : 1) * WEFT_COLS);
    }
    core->job_m = core->load_m;
    core->job_n = core->load_n;
    return WEFT_OK;
}

/* Parameters and bias are packed into the caller's memory, all columns of them. */
static int pack(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t count = weft_ceil(p->n, WEFT_COLS);
    if (!(p->finish & WEFT_BY_COLUMN || p->bias))
        return WEFT_OK;
    if (!core->buffer)
        return WEFT_NULL;
    if (WEFT_ADDRESS(core->buffer) % WEFT_BYTES_IN)
        return WEFT_STRIDE;
    core->used = 0;
    if (p->finish & WEFT_BY_COLUMN)
        weft_put_columns(core, p->columns, p->n, count);
    if (p->bias)
        weft_put_bias(core, p->bias, p->n, count);
    return core->error ? core->error : reach(core, core->buffer, 0, 1, core->used);
}

int weft_begin(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t unit = weft_result_size(p->finish) == 4 ? WEFT_UNIT : WEFT_NARROW_UNIT;
    int error = fetches(core, p->a, p->a_row, p->a_k, p->m, p->k);
    if (!error && !p->weights)
        error = fetches(core, p->b, p->b_col, p->b_k, p->n, p->k);
    if (error)
        return error;
    if (WEFT_ADDRESS(p->c) % unit || (uint32_t)p->c_row % unit)
        return WEFT_STRIDE;
    error = reach(core, p->c, (uint32_t)p->c_row, p->m,
                  (uint64_t)p->n * weft_result_size(p->finish));
    if (!error)
        error = pack(core);
    if (error)
        return error;
    core->error = WEFT_OK;
    core->stage = 0;
    core->oldest = core->tag;
    core->ended = WEFT_REGISTER(core, jobs_done);
    WEFT_WRITE(core->base, offsetof(weft_t, irq_status), ERRORS);
    WEFT_PUBLISH();
    return WEFT_OK;
}

/* The stages of a job. A is loaded in two parts: with its first panel the array can start. */
enum { PARAMETERS, BIAS, JOB, FIRST_A, ALL_B, REST_A, SUBMITTED, NEXT };

static void raw(weft_core *core, unsigned region, uint32_t page, uint32_t pitch, uint32_t words)
{
    const weft_product *p = core->product;
    uint32_t count = weft_ceil(core->width, WEFT_COLS), header[8];
    size_t place = core->col / WEFT_COLS * weft_panel_bytes(region, words);
    if (region == WEFT_C && p->finish & WEFT_BY_COLUMN)
        place += weft_ceil(p->n, WEFT_COLS)
                 * weft_panel_bytes(WEFT_PARAMETERS, weft_ceil(WEFT_COLS, WEFT_LANES));
    weft_load_header(header, region, 0, page, count > 1 ? pitch : 1, count, words);
    fetch(core, header, WEFT_ADDRESS(core->buffer + place), 0, count, 0, PACKED);
}

static void job(weft_core *core, int new_a, int new_b)
{
    const weft_product *p = core->product;
    uint32_t words[10];
    const unsigned char *c = (unsigned char *)p->c + (ptrdiff_t)core->row * p->c_row
                             + (size_t)core->col * weft_result_size(p->finish);
    weft_job_header(core, words, (new_a ? WEFT_FEED_A : 0) | (new_b ? WEFT_FEED_B : 0));
    words[8] = WEFT_ADDRESS(c);
    words[9] = (uint32_t)p->c_row;
    describe(core, 0, words, 10);
    submit(core);
    core->jobs += core->jobs < 0x8000u;
}

/* The page of the next load: not that of the load before, where there is room for two. */
static uint32_t turn(uint32_t page, uint32_t first, uint32_t end, uint32_t pages)
{
    return page == first && first + 2 * pages <= end ? first + pages : first;
}

/* Rows of A for the next job, from `first` on: the first panel, or those behind it. */
static void load_a(weft_core *core, uint32_t first, uint32_t rows)
{
    const weft_product *p = core->product;
    const unsigned char *a = (const unsigned char *)p->a
                             + (ptrdiff_t)(core->row + first) * p->a_row
                             + (ptrdiff_t)core->k * p->a_k;
    load(core, WEFT_A, WEFT_FEED, core->page_a + (first ? core->pitch : 0), core->pitch, a,
         p->a_row, p->a_k, rows, weft_depth(core));
}

/*
 * At most one descriptor of the next job; to the next stage that has one. A job whose stages are
 * over is fully submitted: only such a job can end right.
 */
static void stage(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t pitch = core->pitch, rows = core->height;
    int new_a = core->loaded_row != core->row || weft_splits(core);
    int new_b = !p->weights && (core->loaded_col != core->col || weft_splits(core));
    switch (core->stage++) {
    case PARAMETERS:
        if (new_a)
            core->page_a = turn(core->page_a, 0, weft_regions[WEFT_A].pages,
                                weft_ceil(core->load_m, WEFT_ROWS) * pitch);
        if (new_b)
            core->page_b = turn(core->page_b, core->b_next, weft_regions[WEFT_B].pages,
                                weft_ceil(core->load_n, WEFT_COLS) * pitch);
        if (p->finish & WEFT_BY_COLUMN && !weft_keeps(core))
            raw(core, WEFT_PARAMETERS, weft_b_page(core), pitch,
                weft_ceil(WEFT_COLS, WEFT_LANES));
        break;
    case BIAS:
        if (p->bias && core->k == 0)
            raw(core, WEFT_C, 0, 1, 1);
        break;
    case JOB:
        job(core, new_a, new_b);
        break;
    case FIRST_A:
        load_a(core, 0, weft_least(rows, WEFT_ROWS));
        break;
    case ALL_B:
        load(core, WEFT_B, WEFT_FEED, core->page_b, pitch,
             (const unsigned char *)p->b + (ptrdiff_t)core->col * p->b_col
                 + (ptrdiff_t)core->k * p->b_k,
             p->b_col, p->b_k, core->width, weft_depth(core));
        break;
    case REST_A:
        load_a(core, WEFT_ROWS, rows - WEFT_ROWS);
        break;
    default:
        break;
    }
    if (core->stage == FIRST_A && !new_a)
        core->stage = ALL_B;
    if (core->stage == ALL_B && !new_b)
        core->stage = REST_A;
    if (core->stage == REST_A && !(new_a && rows > WEFT_ROWS))
        core->stage = SUBMITTED;
    if (core->stage == SUBMITTED) {
        core->loaded_row = core->row;
        core->loaded_col = core->col;
        core->stage = weft_advance(core) ? PARAMETERS : NEXT;
    }
}

/* Parts of k that hand on their sums end in silence: of the next job, and before it, they may. */
int weft_due(const weft_core *core)
{
    return (uint16_t)(core->tag - core->oldest) > core->k / core->job_k;
}

/*
 * What it means to this product that a job failed. The bit is cleared before LAST_JOB is read: a job
 * that fails later sets it again.
 */
static int failure(weft_core *core)
{
    uint32_t last, begun = core->stage > JOB && core->stage < NEXT, tag, status;
    core->events &= ~(uint32_t)WEFT__IRQ_STATUS__FAILED_bm;
    WEFT_WRITE(core->base, offsetof(weft_t, irq_status), WEFT__IRQ_STATUS__FAILED_bm);
    last = WEFT_REGISTER(core, last_job);
    tag = (last & WEFT__LAST_JOB__TAG_bm) >> WEFT__LAST_JOB__TAG_bp;
    status = (last & WEFT__LAST_JOB__STATUS_bm) >> WEFT__LAST_JOB__STATUS_bp;
    if (status == 0)
        return WEFT_ABORTED; /* a later job ended right, before it could be seen which one failed */
    return (uint16_t)(core->tag + begun - 1u - tag) < core->jobs ? weft_verdict(status) : WEFT_OK;
}

/* Sees which jobs have ended: the latest one, and all before it. */
static void look(weft_core *core)
{
    uint32_t ended = WEFT_REGISTER(core, jobs_done), tag;
    if (ended != core->ended) { /* else LAST_JOB is of a time before this product */
        core->ended = ended;
        tag = (WEFT_REGISTER(core, last_job) & WEFT__LAST_JOB__TAG_bm) >> WEFT__LAST_JOB__TAG_bp;
        if ((uint16_t)(tag - core->oldest) < (uint16_t)(core->tag - core->oldest)) {
            core->oldest = (uint16_t)(tag + 1u);
            core->waited = 0;
        }
    }
    if (!weft_due(core)) /* all that may run are parts that hand on their sums */
        core->oldest = core->tag;
}

int weft_go_on(weft_core *core)
{
    uint32_t room = WEFT_REGISTER(core, desc_free);
    uint32_t events;
    int error;
    look(core);
    events = core->events | WEFT_REGISTER(core, irq_status); /* of all jobs that were seen to end */
    if (events & WEFT__IRQ_STATUS__BAD_ADDRESS_bm)
        return WEFT_RANGE;
    if (events & WEFT__IRQ_STATUS__BAD_DESCRIPTOR_bm)
        return WEFT_STRIDE;
    if (events & (WEFT__IRQ_STATUS__DMA_READ_ERROR_bm | WEFT__IRQ_STATUS__DMA_WRITE_ERROR_bm))
        return WEFT_MEMORY;
    error = events & WEFT__IRQ_STATUS__FAILED_bm ? failure(core) : WEFT_OK;
    if (error)
        return error;
    for (; room && core->stage < NEXT; room--)
        stage(core);
    return core->stage < NEXT || core->oldest != core->tag ? WEFT_BUSY : WEFT_OK;
}

/* Waits until the core has taken all that was submitted. */
static int rest(weft_core *core)
{
    uint32_t polls, busy = WEFT__STATUS__DMA_BUSY_bm | WEFT__STATUS__BUSY_bm, events;
    for (polls = 0; polls < core->limit; polls++) {
        if (WEFT_REGISTER(core, status) & busy)
            continue;
        events = WEFT_REGISTER(core, irq_status);
        if (events & WEFT__IRQ_STATUS__BAD_ADDRESS_bm)
            return weft_failed(core, WEFT_RANGE);
        if (events & WEFT__IRQ_STATUS__BAD_DESCRIPTOR_bm)
            return weft_failed(core, WEFT_REJECTED);
        return events & WEFT__IRQ_STATUS__DMA_READ_ERROR_bm ? weft_failed(core, WEFT_MEMORY) : WEFT_OK;
    }
    return weft_failed(core, WEFT_TIMEOUT);
}

int weft_load_lines(weft_core *core, uint32_t page, const void *data, ptrdiff_t line,
                    ptrdiff_t value, uint32_t lines, uint32_t k)
{
    int error = fetches(core, data, line, value, lines, k);
    if (error)
        return error;
    WEFT_WRITE(core->base, offsetof(weft_t, irq_status), ERRORS);
    WEFT_PUBLISH();
    load(core, WEFT_B, 0, page, weft_panel_pages(k), data, line, value, lines, k);
    return rest(core);
}

int weft_load_entries(weft_core *core, const uint8_t table[256])
{
    uint32_t words[8];
    int error;
    if (!core->buffer)
        return WEFT_NULL;
    core->used = 0;
    core->error = WEFT_OK;
    weft_put_table(core, table);
    if (core->error)
        return core->error;
    if (WEFT_ADDRESS(core->buffer) % WEFT_BYTES_IN)
        return WEFT_STRIDE;
    error = reach(core, core->buffer, 0, 1, core->used);
    if (error)
        return error;
    WEFT_WRITE(core->base, offsetof(weft_t, irq_status), ERRORS);
    WEFT_PUBLISH();
    weft_load_header(words, WEFT_TABLE_ENTRIES, 0, 0, 1, 1, 256);
    fetch(core, words, WEFT_ADDRESS(core->buffer), 0, 1, 0, PACKED);
    return rest(core);
}
