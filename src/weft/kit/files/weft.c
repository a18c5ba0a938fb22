/* What all buses have in common: start, reset, interrupts, and weights that stay. */
#include "weft_inner.h"

#define NOWHERE 0xFFFFFFFFu
#define WRITE(core, name, value) WEFT_WRITE((core)->base, offsetof(weft_t, name), value)

/* Takes the core for a call; 0 where another call, which this one interrupted, holds it. */
static int hold(weft_core *core)
{
    if (core->held)
        return 0;
    core->held = 1;
    WEFT_BARRIER();
    return 1;
}

/* Gives the core back, then lets a deferred interrupt come: its handler finds the core free. */
static int release(weft_core *core, int result)
{
    WEFT_BARRIER();
    core->held = 0;
    if (core->deferred) {
        core->deferred = 0;
        WRITE(core, irq_enable, core->enabled);
    }
    return result;
}

static int reset(weft_core *core)
{
    uint32_t polls;
    if (core->product)
        core->outcome = WEFT_ABORTED;
    core->product = NULL;
    core->room = core->active = 0;
    core->used = 0;
    core->b_next = 0;
    core->generation++;
    core->error = WEFT_OK;
    core->events = 0;
    WRITE(core, control, WEFT__CONTROL__RESET_bm);
    for (polls = 0; polls < core->limit; polls++)
        if (!(WEFT_REGISTER(core, status) & WEFT__STATUS__RESET_BUSY_bm))
            return WEFT_OK;
    return WEFT_TIMEOUT;
}

int weft_failed(weft_core *core, int error)
{
    reset(core);
    return error;
}

int weft_init(weft_core *core, void *base)
{
    int error = WEFT_IDENTITY;
    core->held = 1;
    core->deferred = 0;
    core->enabled = 0;
    core->base = base;
    core->limit = 1000000;
    core->done = NULL;
    core->context = NULL;
    core->product = NULL;
    core->outcome = WEFT_OK;
    core->generation = 0;
    core->tag = 0;
    if (WEFT_REGISTER(core, magic) == WEFT_MAGIC && WEFT_REGISTER(core, version) == WEFT_VERSION
        && WEFT_REGISTER(core, hash) == WEFT_HASH) {
        WRITE(core, irq_enable, 0);
        error = reset(core);
    }
    return release(core, error);
}

int weft_reset(weft_core *core)
{
    return hold(core) ? release(core, reset(core)) : WEFT_IN_USE;
}

void weft_abort(weft_core *core)
{
    WRITE(core, control, WEFT__CONTROL__ABORT_bm);
}

void weft_enable(weft_core *core, uint32_t mask)
{
    core->enabled = mask;
    if (!core->deferred) /* else it is written when the call that was interrupted returns */
        WRITE(core, irq_enable, mask);
}

/* Ends the product where it has come to its end; after an error the core forgets its jobs. */
static int step(weft_core *core)
{
    int state;
    core->waited++;
    state = weft_go_on(core); /* clears `waited` where it gets on */
    if (state == WEFT_BUSY && core->waited > core->limit)
        state = WEFT_TIMEOUT;
    if (state == WEFT_BUSY)
        return state;
    core->product = NULL;
    core->outcome = state;
    return state == WEFT_OK ? state : weft_failed(core, state);
}

uint32_t weft_irq(weft_core *core)
{
    uint32_t events;
    int state = WEFT_BUSY;
    if (!hold(core)) {
        core->deferred = 1;
        WRITE(core, irq_enable, 0);
        return 0;
    }
    events = WEFT_REGISTER(core, irq_status);
    WRITE(core, irq_status, events); /* before the look at what has ended: none is missed */
    if (core->product) {
        core->events |= events;
        do /* as long as it gets on, and until there is a job to come back for */
            state = step(core);
        while (state == WEFT_BUSY && (core->waited == 0 || !weft_due(core)));
    }
    release(core, state);
    if (state != WEFT_BUSY && core->done)
        core->done(core, state, core->context);
    return events;
}

static int check(const weft_core *core, const weft_product *p)
{
    if (!p || !p->a || !p->c || !(p->weights || p->b))
        return WEFT_NULL;
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

static int start(weft_core *core, const weft_product *product)
{
    int error;
    if (core->product)
        return WEFT_IN_USE;
    error = check(core, product);
    if (error)
        return error;
    core->product = product;
    core->loaded_row = core->loaded_col = NOWHERE;
    core->active = core->waited = core->events = core->jobs = 0;
    core->error = WEFT_OK;
    error = weft_fit(core);
    if (!error) {
        weft_first(core);
        error = weft_begin(core);
    }
    if (error) {
        core->product = NULL; /* nothing has been sent */
        return error;
    }
    do
        error = step(core);
    while (error == WEFT_BUSY && !weft_due(core));
    return error;
}

int weft_start(weft_core *core, const weft_product *product)
{
    return hold(core) ? release(core, start(core, product)) : WEFT_IN_USE;
}

int weft_step(weft_core *core)
{
    if (!hold(core))
        return WEFT_IN_USE;
    return release(core, core->product ? step(core) : core->outcome);
}

int weft_matmul(weft_core *core, const weft_product *product)
{
    int state;
    if (!hold(core))
        return WEFT_IN_USE;
    state = start(core, product);
    while (state == WEFT_BUSY)
        state = step(core);
    return release(core, state);
}

#if WEFT_BF16
int weft_matmul_bf16(weft_core *core, uint32_t m, uint32_t n, uint32_t k, const uint16_t *a,
                     const uint16_t *b, float *c)
#else
int weft_matmul_int8(weft_core *core, uint32_t m, uint32_t n, uint32_t k, const int8_t *a,
                     const int8_t *b, int32_t *c)
#endif
{
    weft_product product;
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
    product.weights = NULL;
    product.finish = 0;
    product.columns = NULL;
    product.bias = NULL;
    return weft_matmul(core, &product);
}

static int load_b(weft_core *core, weft_weights *weights, const void *b, ptrdiff_t b_k,
                  ptrdiff_t b_col, uint32_t n, uint32_t k)
{
    uint32_t pages = weft_ceil(n, WEFT_COLS) * weft_panel_pages(k);
    int error;
    if (core->product)
        return WEFT_IN_USE;
    if (!weights || !b)
        return WEFT_NULL;
    if (n == 0 || n > WEFT_MOST || k == 0 || k > WEFT_K_MOST)
        return WEFT_SHAPE;
    if (k > WEFT_K_PANEL || pages > weft_regions[WEFT_B].pages - core->b_next)
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

int weft_load_b(weft_core *core, weft_weights *weights, const void *b, ptrdiff_t b_k,
                ptrdiff_t b_col, uint32_t n, uint32_t k)
{
    return hold(core) ? release(core, load_b(core, weights, b, b_k, b_col, n, k)) : WEFT_IN_USE;
}

static int free_b(weft_core *core, const weft_weights *weights)
{
    uint32_t pages;
    if (core->product)
        return WEFT_IN_USE;
    if (!weights)
        return WEFT_NULL;
    pages = weft_ceil(weights->n, WEFT_COLS) * weft_panel_pages(weights->k);
    if (weights->generation != core->generation || weights->page + pages != core->b_next)
        return WEFT_STALE;
    core->b_next = weights->page;
    return WEFT_OK;
}

int weft_free_b(weft_core *core, const weft_weights *weights)
{
    return hold(core) ? release(core, free_b(core, weights)) : WEFT_IN_USE;
}

#if WEFT_HAS_TABLE
static int load_table(weft_core *core, const uint8_t *table)
{
    if (core->product)
        return WEFT_IN_USE;
    if (!table)
        return WEFT_NULL;
    return weft_load_entries(core, table);
}

int weft_load_table(weft_core *core, const uint8_t table[256])
{
    return hold(core) ? release(core, load_table(core, table)) : WEFT_IN_USE;
}
#endif

#if WEFT_HAS_WINDOW
static int window(weft_core *core, uint32_t base, uint32_t limit)
{
    if (core->product)
        return WEFT_IN_USE;
    if (base > limit)
        return WEFT_RANGE;
    WRITE(core, dma_base, base);
    WRITE(core, dma_limit, limit);
    return WEFT_OK;
}

int weft_dma_window(weft_core *core, uint32_t base, uint32_t limit)
{
    return hold(core) ? release(core, window(core, base, limit)) : WEFT_IN_USE;
}
#endif
