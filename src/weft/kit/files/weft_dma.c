/* Descriptors: the core fetches operands from memory, and puts its results there. */
#include "weft_inner.h"

/* What a LOAD finds in memory. */
enum { K_CONTIGUOUS = 0, LINES_CONTIGUOUS = 1, RAW = 2 };

#define ERRORS \
    (WEFT__IRQ_STATUS__FAILED_bm | WEFT__IRQ_STATUS__FETCH_ERROR_bm \
     | WEFT__IRQ_STATUS__STORE_ERROR_bm | WEFT__IRQ_STATUS__BAD_DESCRIPTOR_bm)

static void submit(weft_core *core, const uint32_t header[8], uint32_t address, uint32_t stride,
                   uint32_t lines, uint32_t k, uint32_t order)
{
    const uint32_t more[5] = {address, stride, lines, k, order};
    unsigned n;
    for (n = 0; n < 16; n++)
        WEFT_WRITE(core->base, offsetof(weft_t, descriptor_0) + 4 * n,
                   n < 8 ? header[n] : n < 13 ? more[n - 8] : 0);
    WEFT_WRITE(core->base, offsetof(weft_t, submit), WEFT__SUBMIT__GO_bm);
    core->waited = 0;
}

/* How such lines lie in memory: a stride and an order; WEFT_STRIDE where the core cannot. */
static int lie(ptrdiff_t line, ptrdiff_t value, uint32_t *stride, uint32_t *order)
{
    if (value == WEFT_VALUE_BYTES) {
        *order = K_CONTIGUOUS;
        *stride = (uint32_t)line;
    } else if (line == WEFT_VALUE_BYTES) {
        *order = LINES_CONTIGUOUS;
        *stride = (uint32_t)value;
    } else {
        return WEFT_STRIDE;
    }
    return WEFT_OK;
}

static void load(weft_core *core, unsigned side, unsigned flags, uint32_t page, const void *data,
                 ptrdiff_t line, ptrdiff_t value, uint32_t lines, uint32_t k)
{
    uint32_t words[8], stride = 0, order = 0;
    lie(line, value, &stride, &order);
    weft_load_header(words, side, flags, page, weft_panel_pages(k),
                     weft_ceil(lines, weft_regions[side].edge), weft_ceil(k, WEFT_DEPTH));
    submit(core, words, WEFT_ADDRESS(data), stride, lines, k, order);
}

/* Several loads need places of their own, so that one moves while another is worked on. */
int weft_bound(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t pitch = weft_panel_pages(core->job_k);
    uint32_t rows = weft_regions[WEFT_A].pages / pitch / 2;
    uint32_t cols = (weft_regions[WEFT_B].pages - core->b_next) / pitch / 2;
    if (core->load_m < p->m && rows)
        core->load_m = weft_least(core->load_m, rows * WEFT_ROWS);
    if (core->load_n < p->n && cols && !p->weights)
        core->load_n = weft_least(core->load_n, cols * WEFT_COLS);
    core->job_m = core->load_m;
    core->job_n = core->load_n;
    return WEFT_OK;
}

/* Parameters and bias are packed into the caller's memory, all columns of them. */
static int pack(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t count = weft_ceil(p->n, WEFT_COLS);
    if ((p->finish & WEFT_BY_COLUMN || p->bias) && WEFT_ADDRESS(core->buffer) % WEFT_BYTES_IN)
        return WEFT_STRIDE;
    core->used = 0;
    if (p->finish & WEFT_BY_COLUMN)
        weft_put_columns(core, p->columns, p->n, count);
    if (p->bias)
        weft_put_bias(core, p->bias, p->n, count);
    return core->error;
}

int weft_begin(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t unit = weft_result_size(p->finish) == 4 ? WEFT_UNIT : WEFT_NARROW_UNIT;
    uint32_t stride, order;
    int error;
    if (lie(p->a_row, p->a_k, &stride, &order)
        || (!p->weights && lie(p->b_col, p->b_k, &stride, &order)))
        return WEFT_STRIDE;
    if (WEFT_ADDRESS(p->c) % unit || (uint32_t)p->c_row % unit)
        return WEFT_STRIDE;
    error = pack(core);
    core->error = WEFT_OK;
    core->stage = 0;
    core->active = 0; /* jobs not known to have ended */
    core->ended = WEFT_REGISTER(core, ended);
    WEFT_WRITE(core->base, offsetof(weft_t, irq_status), ERRORS);
    WEFT_PUBLISH();
    return error;
}

/* The stages of a job. A is loaded in two parts: with its first panel the array can start. */
enum { PARAMETERS, BIAS, JOB, FIRST_A, ALL_B, REST_A, NEXT };

static void raw(weft_core *core, unsigned region, uint32_t page, uint32_t pitch, uint32_t words)
{
    const weft_product *p = core->product;
    uint32_t count = weft_ceil(weft_width(core), WEFT_COLS), header[8];
    size_t place = core->col / WEFT_COLS * weft_panel_bytes(region, words);
    if (region == WEFT_C && p->finish & WEFT_BY_COLUMN)
        place += weft_ceil(p->n, WEFT_COLS)
                 * weft_panel_bytes(WEFT_PARAMETERS, weft_ceil(WEFT_COLS, WEFT_LANES));
    weft_load_header(header, region, 0, page, count > 1 ? pitch : 1, count, words);
    submit(core, header, WEFT_ADDRESS(core->buffer + place), 0, count, 0, RAW);
}

static void job(weft_core *core, int new_a, int new_b)
{
    const weft_product *p = core->product;
    uint32_t words[8];
    const unsigned char *c = (unsigned char *)p->c + (ptrdiff_t)core->row * p->c_row
                             + (size_t)core->col * weft_result_size(p->finish);
    weft_job_header(core, words, (new_a ? WEFT_FEED_A : 0) | (new_b ? WEFT_FEED_B : 0));
    submit(core, words, WEFT_ADDRESS(c), (uint32_t)p->c_row, 0, 0, 0);
    core->active += !weft_keeps(core);
}

/* The page of the next load: not that of the load before, where there is room for two. */
static uint32_t turn(uint32_t page, uint32_t first, uint32_t end, uint32_t pages)
{
    return page == first && first + 2 * pages <= end ? first + pages : first;
}

/* At most one descriptor of the next job; to the next stage. */
static void stage(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t pitch = weft_panel_pages(core->job_k), rows = weft_height(core);
    int new_a = core->loaded_row != core->row || weft_splits(core);
    int new_b = !p->weights && (core->loaded_col != core->col || weft_splits(core));
    const unsigned char *a = (const unsigned char *)p->a + (ptrdiff_t)core->row * p->a_row
                             + (ptrdiff_t)core->k * p->a_k;
    const unsigned char *b = (const unsigned char *)p->b + (ptrdiff_t)core->col * p->b_col
                             + (ptrdiff_t)core->k * p->b_k;
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
        if (new_a)
            load(core, WEFT_A, WEFT_FEED, core->page_a, a, p->a_row, p->a_k,
                 weft_least(rows, WEFT_ROWS), weft_depth(core));
        break;
    case ALL_B:
        if (new_b)
            load(core, WEFT_B, WEFT_FEED, core->page_b, b, p->b_col, p->b_k, weft_width(core),
                 weft_depth(core));
        break;
    case REST_A:
        if (new_a && rows > WEFT_ROWS)
            load(core, WEFT_A, WEFT_FEED, core->page_a + pitch, a + WEFT_ROWS * p->a_row,
                 p->a_row, p->a_k, rows - WEFT_ROWS, weft_depth(core));
        core->loaded_row = core->row;
        core->loaded_col = core->col;
        core->stage = weft_advance(core) ? PARAMETERS : NEXT;
        break;
    default:
        break;
    }
}

int weft_go_on(weft_core *core)
{
    uint32_t room = WEFT_REGISTER(core, descriptor_room);
    uint32_t events = core->events | WEFT_REGISTER(core, irq_status), ended;
    if (events & WEFT__IRQ_STATUS__BAD_DESCRIPTOR_bm)
        return WEFT_STRIDE;
    if (events & (WEFT__IRQ_STATUS__FETCH_ERROR_bm | WEFT__IRQ_STATUS__STORE_ERROR_bm))
        return WEFT_MEMORY;
    if (events & WEFT__IRQ_STATUS__FAILED_bm)
        return WEFT_REGISTER(core, last) & 2u << WEFT__LAST__STATUS_bp ? WEFT_REJECTED
                                                                       : WEFT_ABORTED;
    for (; room && core->stage < NEXT; room--)
        stage(core);
    ended = WEFT_REGISTER(core, ended);
    if (ended != core->ended) {
        core->active -= ended - core->ended;
        core->ended = ended;
        core->waited = 0;
    }
    return core->stage < NEXT || core->active ? WEFT_BUSY : WEFT_OK;
}

/* Waits until the core has taken all that was submitted. */
static int rest(weft_core *core)
{
    uint32_t polls, busy = WEFT__STATUS__MOVING_bm | WEFT__STATUS__BUSY_bm;
    for (polls = 0; polls < core->limit; polls++)
        if (!(WEFT_REGISTER(core, status) & busy))
            return WEFT_REGISTER(core, irq_status) & WEFT__IRQ_STATUS__FETCH_ERROR_bm
                       ? WEFT_MEMORY
                       : WEFT_OK;
    return WEFT_TIMEOUT;
}

int weft_load_lines(weft_core *core, uint32_t page, const void *data, ptrdiff_t line,
                    ptrdiff_t value, uint32_t lines, uint32_t k)
{
    uint32_t stride, order;
    int error = lie(line, value, &stride, &order);
    if (error)
        return error;
    WEFT_WRITE(core->base, offsetof(weft_t, irq_status), ERRORS);
    WEFT_PUBLISH();
    load(core, WEFT_B, 0, page, data, line, value, lines, k);
    return rest(core);
}

int weft_load_entries(weft_core *core, const uint8_t table[256])
{
    uint32_t words[8];
    core->used = 0;
    core->error = WEFT_OK;
    weft_put_table(core, table);
    if (core->error)
        return core->error;
    if (WEFT_ADDRESS(core->buffer) % WEFT_BYTES_IN)
        return WEFT_STRIDE;
    WEFT_WRITE(core->base, offsetof(weft_t, irq_status), ERRORS);
    WEFT_PUBLISH();
    weft_load_header(words, WEFT_TABLE_ENTRIES, 0, 0, 1, 1, 256);
    submit(core, words, WEFT_ADDRESS(core->buffer), 0, 1, 0, RAW);
    return rest(core);
}
