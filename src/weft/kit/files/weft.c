/* The public functions: initialization, reset, interrupts, products and resident weights. */
#include "weft_internal.h"

#define NOT_LOADED 0xFFFFFFFFu
#define WRITE(core, name, value) WEFT_WRITE((core)->base, offsetof(weft_t, name), value)

/* Lock the core. Returns 0 if this call interrupted another function, which has locked it. */
static int lock(weft_core *core)
{
    if (core->locked)
        return 0;
    core->locked = 1;
    WEFT_BARRIER();
    return 1;
}

/* Unlock the core, then unmask a deferred interrupt, so that its handler finds it unlocked. */
static int unlock(weft_core *core, int result)
{
    WEFT_BARRIER();
    core->locked = 0;
    if (core->irq_deferred) {
        core->irq_deferred = 0;
        WRITE(core, irq_enable, core->irq_mask);
    }
    return result;
}

static int reset(weft_core *core)
{
    uint32_t polls;
    if (core->product)
        core->last_result = WEFT_ERR_ABORTED;
    core->product = NULL;
    core->cmd_free = core->job_active = 0;
    core->buffer_used = 0;
    core->b_free_page = 0;
    core->generation++;
    core->error = WEFT_OK;
    core->irq_events = 0;
    WRITE(core, control, WEFT__CONTROL__RESET_bm);
    for (polls = 0; polls < core->poll_limit; polls++)
        if (!(WEFT_REGISTER(core, status) & WEFT__STATUS__RESET_BUSY_bm))
            return WEFT_OK;
    return WEFT_ERR_TIMEOUT;
}

int weft_fail(weft_core *core, int error)
{
    reset(core);
    return error;
}

int weft_init(weft_core *core, void *base)
{
    int error = WEFT_ERR_ID;
    core->locked = 1;
    core->irq_deferred = 0;
    core->irq_mask = 0;
    core->base = base;
    if (core->poll_limit == 0)
        core->poll_limit = 1000000;
    core->done = NULL;
    core->context = NULL;
    core->product = NULL;
    core->last_result = WEFT_OK;
    core->generation = 0;
    core->next_tag = 0;
    if (WEFT_REGISTER(core, magic) == WEFT_MAGIC && WEFT_REGISTER(core, version) == WEFT_VERSION
        && WEFT_REGISTER(core, kind) == WEFT_KIND && WEFT_REGISTER(core, hash) == WEFT_HASH) {
        WRITE(core, irq_enable, 0);
        error = reset(core);
    }
    return unlock(core, error);
}

int weft_reset(weft_core *core)
{
    return lock(core) ? unlock(core, reset(core)) : WEFT_ERR_IN_USE;
}

void weft_abort(weft_core *core)
{
    WRITE(core, control, WEFT__CONTROL__ABORT_bm);
}

void weft_irq_enable(weft_core *core, uint32_t mask)
{
    core->irq_mask = mask;
    if (!core->irq_deferred) /* otherwise unlock() writes it */
        WRITE(core, irq_enable, mask);
}

/* Advance the product by one step. After an error the core is reset. */
static int step(weft_core *core)
{
    int state;
    core->idle_polls++;
    state = weft_poll(core); /* clears idle_polls on progress */
    if (state == WEFT_BUSY && core->idle_polls > core->poll_limit)
        state = WEFT_ERR_TIMEOUT;
    if (state == WEFT_BUSY)
        return state;
    core->product = NULL;
    core->last_result = state;
    return state == WEFT_OK ? state : weft_fail(core, state);
}

uint32_t weft_irq(weft_core *core)
{
    uint32_t events;
    int state = WEFT_BUSY;
    if (!lock(core)) {
        core->irq_deferred = 1;
        WRITE(core, irq_enable, 0);
        return 0;
    }
    events = WEFT_REGISTER(core, irq_status);
    WRITE(core, irq_status, events); /* before the poll, so that no job's end is missed */
    if (core->product) {
        core->irq_events |= events;
        do /* while there is progress, or no job runs whose end raises an interrupt */
            state = step(core);
        while (state == WEFT_BUSY && (core->idle_polls == 0 || !weft_awaits_irq(core)));
    }
    unlock(core, state);
    if (state != WEFT_BUSY && core->done)
        core->done(core, state, core->context);
    return events;
}

static int check(const weft_core *core, const weft_product *p)
{
    if (!p || !p->a || !p->c || !(p->weights || p->b))
        return WEFT_ERR_NULL;
    if (p->m == 0 || p->n == 0 || p->k == 0 || p->k > WEFT_K_MAX)
        return WEFT_ERR_SHAPE;
    if (p->epilogue & ~(unsigned)WEFT_EPILOGUE_FLAGS || (p->bias && !WEFT_HAS_BIAS)
        || (p->epilogue & WEFT_TABLE && !(p->epilogue & WEFT_REQUANTIZE))
        || (p->epilogue & WEFT_BY_COLUMN && !p->columns))
        return WEFT_ERR_EPILOGUE;
    if (p->weights && p->weights->generation != core->generation)
        return WEFT_ERR_STALE;
    if (p->weights && (p->weights->n != p->n || p->weights->k != p->k))
        return WEFT_ERR_SHAPE;
    return WEFT_OK;
}

static int start(weft_core *core, const weft_product *product)
{
    int error;
    if (core->product)
        return WEFT_ERR_IN_USE;
    error = check(core, product);
    if (error)
        return error;
    core->product = product;
    core->resident_row = core->resident_col = NOT_LOADED;
    core->job_active = core->idle_polls = core->irq_events = core->jobs_submitted = 0;
    core->error = WEFT_OK;
    error = weft_plan(core);
    if (!error) {
        weft_first_job(core);
        error = weft_prepare(core);
    }
    if (error) {
        core->product = NULL; /* nothing was sent, so no reset is needed */
        return error;
    }
    do
        error = step(core);
    while (error == WEFT_BUSY && !weft_awaits_irq(core));
    return error;
}

int weft_start(weft_core *core, const weft_product *product)
{
    return lock(core) ? unlock(core, start(core, product)) : WEFT_ERR_IN_USE;
}

int weft_step(weft_core *core)
{
    if (!lock(core))
        return WEFT_ERR_IN_USE;
    return unlock(core, core->product ? step(core) : core->last_result);
}

int weft_matmul(weft_core *core, const weft_product *product)
{
    int state;
    if (!lock(core))
        return WEFT_ERR_IN_USE;
    state = start(core, product);
    while (state == WEFT_BUSY)
        state = step(core);
    return unlock(core, state);
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
    product.a_row_stride = (ptrdiff_t)(k * sizeof *a);
    product.a_k_stride = product.b_col_stride = sizeof *a;
    product.b = b;
    product.b_k_stride = (ptrdiff_t)(n * sizeof *b);
    product.c = c;
    product.c_row_stride = (ptrdiff_t)(n * sizeof *c);
    product.weights = NULL;
    product.epilogue = 0;
    product.columns = NULL;
    product.bias = NULL;
    return weft_matmul(core, &product);
}

static int load_b(weft_core *core, weft_weights *weights, const void *b, ptrdiff_t b_k_stride,
                  ptrdiff_t b_col_stride, uint32_t n, uint32_t k)
{
    uint32_t pages = weft_ceil(n, WEFT_COLS) * weft_panel_pages(k);
    int error;
    if (core->product)
        return WEFT_ERR_IN_USE;
    if (!weights || !b)
        return WEFT_ERR_NULL;
    if (n == 0 || n > WEFT_FIELD_MAX || k == 0 || k > WEFT_K_MAX)
        return WEFT_ERR_SHAPE;
    if (k > WEFT_K_PANEL || pages > weft_regions[WEFT_B].pages - core->b_free_page)
        return WEFT_ERR_NO_SPACE;
    error = weft_send_weights(core, core->b_free_page, b, b_col_stride, b_k_stride, n, k);
    if (error)
        return error;
    weights->n = n;
    weights->k = k;
    weights->page = core->b_free_page;
    weights->generation = core->generation;
    core->b_free_page += pages;
    return WEFT_OK;
}

int weft_load_b(weft_core *core, weft_weights *weights, const void *b, ptrdiff_t b_k_stride,
                ptrdiff_t b_col_stride, uint32_t n, uint32_t k)
{
    if (!lock(core))
        return WEFT_ERR_IN_USE;
    return unlock(core, load_b(core, weights, b, b_k_stride, b_col_stride, n, k));
}

static int free_b(weft_core *core, const weft_weights *weights)
{
    uint32_t pages;
    if (core->product)
        return WEFT_ERR_IN_USE;
    if (!weights)
        return WEFT_ERR_NULL;
    pages = weft_ceil(weights->n, WEFT_COLS) * weft_panel_pages(weights->k);
    if (weights->generation != core->generation || weights->page + pages != core->b_free_page)
        return WEFT_ERR_STALE;
    core->b_free_page = weights->page;
    return WEFT_OK;
}

int weft_free_b(weft_core *core, const weft_weights *weights)
{
    return lock(core) ? unlock(core, free_b(core, weights)) : WEFT_ERR_IN_USE;
}

#if WEFT_HAS_TABLE
static int load_table(weft_core *core, const uint8_t *table)
{
    if (core->product)
        return WEFT_ERR_IN_USE;
    if (!table)
        return WEFT_ERR_NULL;
    return weft_send_table(core, table);
}

int weft_load_table(weft_core *core, const uint8_t table[256])
{
    return lock(core) ? unlock(core, load_table(core, table)) : WEFT_ERR_IN_USE;
}
#endif

#if WEFT_HAS_WINDOW
static int set_window(weft_core *core, uint32_t base, uint32_t limit)
{
    if (core->product)
        return WEFT_ERR_IN_USE;
    if (base > limit)
        return WEFT_ERR_RANGE;
    WRITE(core, dma_base, base);
    WRITE(core, dma_limit, limit);
    return WEFT_OK;
}

int weft_dma_window(weft_core *core, uint32_t base, uint32_t limit)
{
    return lock(core) ? unlock(core, set_window(core, base, limit)) : WEFT_ERR_IN_USE;
}
#endif
