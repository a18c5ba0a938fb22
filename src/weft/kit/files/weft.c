/* What all buses have in common: start, reset, interrupts, and the splitting of products. */
#include "weft_inner.h"

#define NOWHERE 0xFFFFFFFFu
#define WRITE(core, name, value) WEFT_WRITE((core)->base, offsetof(weft_t, name), value)

int weft_init(weft_core *core, void *base)
{
    core->base = base;
    core->limit = 1000000;
    core->done = NULL;
    core->context = NULL;
    core->generation = 0;
    core->tag = 0;
    if (WEFT_REGISTER(core, magic) != WEFT_MAGIC || WEFT_REGISTER(core, version) != WEFT_VERSION
        || WEFT_REGISTER(core, hash) != WEFT_HASH)
        return WEFT_IDENTITY;
    WRITE(core, irq_enable, 0);
    return weft_reset(core);
}

int weft_reset(weft_core *core)
{
    uint32_t polls;
    core->product = NULL;
    core->room = 0;
    core->used = 0;
    core->b_next = 0;
    core->generation++;
    core->error = WEFT_OK;
    core->events = 0;
    WRITE(core, control, WEFT__CONTROL__RESET_bm);
    for (polls = 0; polls < core->limit; polls++)
        if (!(WEFT_REGISTER(core, status) & WEFT__STATUS__RESETTING_bm))
            return WEFT_OK;
    return WEFT_TIMEOUT;
}

void weft_abort(weft_core *core)
{
    WRITE(core, control, WEFT__CONTROL__ABORT_bm);
}

void weft_enable(weft_core *core, uint32_t mask)
{
    WRITE(core, irq_enable, mask);
}

uint32_t weft_irq(weft_core *core)
{
    uint32_t events = WEFT_REGISTER(core, irq_status);
    WRITE(core, irq_status, events);
    core->events |= events;
    if (core->product) {
        int state = weft_step(core);
        while (state == WEFT_BUSY && core->waited == 0) /* as long as it gets on */
            state = weft_step(core);
        if (state != WEFT_BUSY && core->done)
            core->done(core, state, core->context);
    }
    return events;
}

uint32_t weft_height(const weft_core *core)
{
    uint32_t end = weft_least(core->row - core->row % core->load_m + core->load_m,
                              core->product->m);
    return weft_least(core->job_m, end - core->row);
}

uint32_t weft_width(const weft_core *core)
{
    uint32_t end = weft_least(core->col - core->col % core->load_n + core->load_n,
                              core->product->n);
    return weft_least(core->job_n, end - core->col);
}

uint32_t weft_depth(const weft_core *core)
{
    return weft_least(core->job_k, core->product->k - core->k);
}

int weft_splits(const weft_core *core)
{
    return core->job_k < core->product->k;
}

int weft_keeps(const weft_core *core)
{
    return core->job_k < core->product->k - core->k;
}

/* The rest of k; rows of what is loaded, then its columns, then the next to load. */
int weft_advance(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t row = core->row - core->row % core->load_m;
    uint32_t col = core->col - core->col % core->load_n;
    uint32_t width = weft_width(core);
    core->tag++;
    if (weft_keeps(core)) {
        core->k += core->job_k;
        return 1;
    }
    core->k = 0;
    core->row += weft_height(core);
    if (core->row < p->m && core->row % core->load_m)
        return 1;
    core->row = row;
    core->col += width;
    if (core->col < p->n && core->col % core->load_n)
        return 1;
    core->col = col;
    core->row = row + core->load_m;
    if (core->row < p->m)
        return 1;
    core->row = 0;
    core->col = col + core->load_n;
    return core->col < p->n;
}

uint32_t weft_b_page(const weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t start = p->weights ? 0 : core->col - core->col % core->load_n;
    uint32_t page = p->weights ? p->weights->page : core->page_b;
    return page + (core->col - start) / WEFT_COLS * weft_panel_pages(core->job_k);
}

void weft_job_header(const weft_core *core, uint32_t words[8], unsigned flags)
{
    const weft_product *p = core->product;
    uint32_t m = weft_height(core), n = weft_width(core), pitch = weft_panel_pages(core->job_k);
    uint32_t rows = weft_ceil(m, WEFT_ROWS), cols = weft_ceil(n, WEFT_COLS);
    uint32_t page = core->page_a + core->row % core->load_m / WEFT_ROWS * pitch;
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
    uint32_t k = weft_depth(core), edge = weft_regions[side].edge, words[8];
    const unsigned char *start = (const unsigned char *)data + (ptrdiff_t)core->k * value;
    weft_load_header(words, side, 0, page, weft_panel_pages(core->job_k), weft_ceil(lines, edge),
                     weft_ceil(k, WEFT_DEPTH));
    weft_put_header(core, words);
    weft_put_lines(core, side, start, line, value, lines, k);
}

void weft_put_job(weft_core *core)
{
    const weft_product *p = core->product;
    uint32_t row = core->row - core->row % core->load_m, words[8];
    uint32_t col = core->col - core->col % core->load_n;
    uint32_t count = weft_ceil(weft_width(core), WEFT_COLS);
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
        weft_load_header(words, WEFT_PARAMETERS, 0, weft_b_page(core),
                         count > 1 ? weft_panel_pages(core->job_k) : 1, count,
                         weft_ceil(WEFT_COLS, WEFT_LANES));
        weft_put_header(core, words);
        weft_put_columns(core, p->columns + core->col, p->n - core->col, count);
    }
    if (p->bias && core->k == 0) {
        weft_load_header(words, WEFT_C, 0, 0, 1, count, 1);
        weft_put_header(core, words);
        weft_put_bias(core, p->bias + core->col, p->n - core->col, count);
    }
    weft_job_header(core, words, 0);
    weft_put_header(core, words);
}
#endif

static int check(const weft_core *core, const weft_product *p)
{
    if (p->m == 0 || p->n == 0 || p->k == 0 || p->k > WEFT_K_MOST)
        return WEFT_SHAPE;
    if (p->finish & ~(unsigned)WEFT_FINISHES || (p->bias && !WEFT_HAS_BIAS)
        || (p->finish & WEFT_TABLE && !(p->finish & WEFT_REQUANTIZE))
        || (p->finish & WEFT_BY_COLUMN && !p->columns))
        return WEFT_FINISH;
    if (p->weights && p->weights->generation != core->generation)
        return WEFT_STALE;
    if (p->weights && (p->weights->n != p->n || p->weights->k != p->k))
        return WEFT_SHAPE;
    return WEFT_OK;
}

/*
 * What is loaded and computed at once: all that fits the chip, and what the bus makes of it. Where
 * a panel does not fit, jobs of a tile and of a part of k, two of which do, hand on their sums.
 */
static int fit(weft_core *core)
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

static int finish(weft_core *core, int state)
{
    if (state == WEFT_BUSY)
        return state;
    core->product = NULL;
    if (state != WEFT_OK)
        weft_reset(core);
    return state;
}

int weft_start(weft_core *core, const weft_product *product)
{
    int error = check(core, product);
    if (error)
        return error;
    core->product = product;
    core->row = core->col = core->k = 0;
    core->loaded_row = core->loaded_col = NOWHERE;
    core->active = core->waited = core->events = 0;
    core->error = WEFT_OK;
    error = fit(core);
    if (!error)
        error = weft_begin(core);
    if (error)
        core->product = NULL; /* nothing has been sent */
    return error ? error : finish(core, weft_go_on(core));
}

int weft_step(weft_core *core)
{
    int state;
    if (!core->product)
        return WEFT_OK;
    core->waited++;
    state = weft_go_on(core); /* clears `waited` where it gets on */
    if (state == WEFT_BUSY && core->waited > core->limit)
        state = WEFT_TIMEOUT;
    return finish(core, state);
}

int weft_matmul(weft_core *core, const weft_product *product)
{
    int state = weft_start(core, product);
    while (state == WEFT_BUSY)
        state = weft_step(core);
    return state;
}

#if WEFT_BF16
int weft_matmul_bf16(weft_core *core, uint32_t m, uint32_t n, uint32_t k, const uint16_t *a,
                     const uint16_t *b, float *c)
#else
int weft_matmul_int8(weft_core *core, uint32_t m, uint32_t n, uint32_t k, const int8_t *a,
                     const int8_t *b, int32_t *c)
#endif
{
    weft_product product = {0};
    product.m = m;
    product.n = n;
    product.k = k;
    product.a = a;
    product.a_row = (ptrdiff_t)(k * sizeof *a);
    product.a_k = product.b_col = sizeof *a;
    product.b = b;
    product.b_k = (ptrdiff_t)(n * sizeof *b);
    product.c = c;
    product.c_row = (ptrdiff_t)(n * sizeof *c);
    return weft_matmul(core, &product);
}

int weft_load_b(weft_core *core, weft_weights *weights, const void *b, ptrdiff_t b_k,
                ptrdiff_t b_col, uint32_t n, uint32_t k)
{
    uint32_t pages = weft_ceil(n, WEFT_COLS) * weft_panel_pages(k);
    int error;
    if (n == 0 || n > WEFT_MOST || k == 0 || k > WEFT_K_MOST)
        return WEFT_SHAPE;
    if (k > WEFT_K_PANEL)
        return WEFT_ROOM;
    if (pages > weft_regions[WEFT_B].pages - core->b_next)
        return WEFT_ROOM;
    error = weft_load_lines(core, core->b_next, b, b_col, b_k, n, k);
    if (error)
        return error;
    weights->n = n;
    weights->k = k;
    weights->page = core->b_next;
    weights->generation = core->generation;
    core->b_next += pages;
    return WEFT_OK;
}

int weft_free_b(weft_core *core, const weft_weights *weights)
{
    uint32_t pages = weft_ceil(weights->n, WEFT_COLS) * weft_panel_pages(weights->k);
    if (weights->generation != core->generation || weights->page + pages != core->b_next)
        return WEFT_STALE;
    core->b_next = weights->page;
    return WEFT_OK;
}

#if WEFT_HAS_TABLE
int weft_load_table(weft_core *core, const uint8_t table[256])
{
    return weft_load_entries(core, table);
}
#endif
