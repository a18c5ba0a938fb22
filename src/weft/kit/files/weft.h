/*
 * Driver of a Weft core: freestanding C99, no heap, no library; it includes <stdint.h> and
 * <stddef.h>. The processor must be little-endian.
 *
 * Every wait has a limit, every function that may fail returns an enum weft_error.
 *
 * Contexts. "The thread" is the main loop, or the one task that owns the core; several tasks need a
 * lock of their own around each call. "The handler" is the interrupt handler; it must run on the
 * thread's processor.
 *
 *   weft_irq()                    from the handler, at any time: it may interrupt every other call
 *   weft_abort(), weft_enable()   from the thread or the handler, at any time
 *   all others                    from the thread, and from the callback `done`
 *
 * A call holds the core from its entry to its return. weft_irq() does not touch a held core: it
 * masks the core's interrupt, and the call unmasks it as it returns. So no handler ever sees the
 * state of a product half written, and no interrupt is lost. Any other call that meets a held core
 * (from a handler, say) is refused with WEFT_IN_USE.
 *
 * What it does: products of int8 (or bfloat16) matrices of any M, N and K; of int8 as long as no
 * sum can leave 32 bits (WEFT_K_MOST). They are split into jobs; where K is larger than a panel in
 * the core's buffers (WEFT_K_PANEL), into jobs of a tile that hand on their sums.
 */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>

#include "weft_config.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How registers are reached. Define both elsewhere (-include port.h) for anything but a plain
 * memory-mapped bus; ``base`` is what weft_init() was given.
 */
#ifndef WEFT_READ
#define WEFT_READ(base, offset) \
    (*(volatile const uint32_t *)((uintptr_t)(base) + (uintptr_t)(offset)))
#endif
#ifndef WEFT_WRITE
#define WEFT_WRITE(base, offset, value) \
    (*(volatile uint32_t *)((uintptr_t)(base) + (uintptr_t)(offset)) = (value))
#endif

/*
 * The address that the core's bus master sees of what lies at a pointer, and what makes memory
 * that the processor wrote visible to it (a barrier, the cleaning of a cache). After a product the
 * processor must not have old copies of its results in a cache: that is the caller's affair.
 */
#ifndef WEFT_ADDRESS
#define WEFT_ADDRESS(pointer) ((uint32_t)(uintptr_t)(pointer))
#endif
#ifndef WEFT_PUBLISH
#define WEFT_PUBLISH() ((void)0)
#endif

/*
 * What keeps the compiler from moving accesses to memory from one side of it to the other. The
 * processor needs no barrier: a handler that interrupts it sees its own writes in their order.
 */
#ifndef WEFT_BARRIER
#ifdef __GNUC__
#define WEFT_BARRIER() __asm__ volatile("" ::: "memory")
#else
#error "WEFT_BARRIER() must be defined for this compiler: a barrier against reordering by it"
#endif
#endif

/* A register by its name in the register map: WEFT_REGISTER(core, busy). */
#define WEFT_REGISTER(core, name) WEFT_READ((core)->base, offsetof(weft_t, name))

enum weft_error {
    WEFT_OK = 0,
    WEFT_BUSY = 1,      /* not an error: more is to come */
    WEFT_IDENTITY = -1, /* what answers is no Weft core, or one of another Config */
    WEFT_TIMEOUT = -2,  /* nothing moved for as long as the limit says */
    WEFT_SHAPE = -3,    /* M, N or K is 0, or K is larger than WEFT_K_MOST */
    WEFT_STRIDE = -4,   /* a stride or an alignment that this bus does not do */
    WEFT_ROOM = -5,     /* it does not fit the buffers, the chip's or the caller's */
    WEFT_ABORTED = -6,  /* the job was aborted */
    WEFT_REJECTED = -7, /* the core refused the job */
    WEFT_MEMORY = -8,   /* memory answered the core with an error */
    WEFT_STALE = -9,    /* weights from before a reset, or not the last ones loaded */
    WEFT_FINISH = -10,  /* the Config does not finish results in this way */
    WEFT_IN_USE = -11,  /* a product is under way, or this call interrupted another one */
    WEFT_NULL = -12,    /* a pointer that is needed is NULL */
    WEFT_RANGE = -13    /* the core would leave its 32 bits of addresses, or its window */
};

/* How results are finished; 0: they are the sums, int32_t or float. */
enum {
    WEFT_REQUANTIZE = 16, /* int8 cores: to bytes, by `columns` */
    WEFT_TABLE = 32,      /* ... and through the table of weft_load_table() */
    WEFT_CLAMP = 256,     /* bf16 cores: between the limits in `columns` */
    WEFT_ROUND = 512      /* bf16 cores: to bfloat16 */
};

#if WEFT_BF16
/* The limits of a column's results; neither is NaN. */
typedef struct weft_column {
    float low, high;
} weft_column;
#else
/* What finishes a column: ``clamp(scale(sum + bias) + zero, low, high)``. */
typedef struct weft_column {
    int32_t bias;
    uint32_t multiplier; /* 0..2^31 - 1; in mode onnx the bits of a float */
    int8_t shift;        /* -31..31, left where positive */
    int8_t b_zero;       /* zero point of B, 0 where the Config has no b_zero_point */
    int16_t zero, low, high;
} weft_column;
#endif

/* A B that stays on the chip. */
typedef struct weft_weights {
    uint32_t n, k, page, generation;
} weft_weights;

/*
 * C[m, n] = A[m, k] x B[k, n]. Strides are in bytes, and may be negative: a transposed matrix is
 * the same one with its strides swapped. With bus dma one of the two strides of A is the size of a
 * value, one of B's too; addresses and strides of both are multiples of that size; C and its stride
 * are multiples of WEFT_UNIT bytes, of WEFT_NARROW_UNIT where results are bytes or bfloat16.
 */
typedef struct weft_product {
    uint32_t m, n, k;
    const void *a;
    ptrdiff_t a_row, a_k;        /* from a row to the next, from a value of k to the next */
    const void *b;               /* unused with weights */
    ptrdiff_t b_k, b_col;
    const weft_weights *weights; /* or NULL */
    void *c;
    ptrdiff_t c_row;             /* results of a row lie side by side */
    unsigned finish;             /* 0, or of the bits above */
    const weft_column *columns;  /* n of them, where finish asks for them */
    const float *bias;           /* bf16 cores: n numbers that sums start from, or NULL */
} weft_product;

typedef struct weft_core weft_core;

struct weft_core {
    /* Set by weft_init(); may be changed between products. */
    void *base;
    uint32_t limit; /* polls without progress until a wait gives up */
    /*
     * Called by weft_irq(), in the handler, when it has ended what weft_start() began; or NULL. It
     * may start the next product.
     */
    void (*done)(weft_core *core, int error, void *context);
    void *context;
#if !WEFT_FIFO
    /* Memory for what is packed; aligned to WEFT_BYTES_IN. */
    uint8_t *buffer;
    size_t buffer_bytes;
#endif
#if WEFT_STREAM
    /*
     * Sends ``bytes`` on the command stream and, where results are expected, receives one packet
     * of ``result_bytes`` at most at the same time; gives the tuser of its last word. The memory
     * for it is the caller's, too. Returns WEFT_OK, or an error.
     */
    int (*exchange)(weft_core *core, const void *commands, size_t bytes, void *results,
                    size_t result_bytes, unsigned *status);
    uint8_t *results;
    size_t results_bytes;
#endif
    /* The driver's own. */
    volatile uint32_t held, deferred;          /* by a call; an interrupt until it returns */
    uint32_t enabled;                          /* interrupts, by weft_enable() */
    const weft_product *product;               /* under way, or NULL */
    int outcome;                               /* how the last one ended */
    uint32_t load_m, load_n, job_m, job_n;     /* what is loaded, and computed, at once */
    uint32_t job_k, pitch;                     /* ... and pages of a panel of it */
    uint32_t first_row, first_col;             /* of what is loaded for the next job */
    uint32_t row, col, k, height, width;       /* the next job */
    uint32_t loaded_row, loaded_col;           /* what is on the chip */
    uint32_t page_a, page_b;                   /* ... and where */
    uint32_t b_next, generation;               /* the first page free of weights */
    uint32_t events, waited;
    uint32_t room, active;                     /* of the windows */
    size_t used;                               /* of the buffer */
    uint32_t stage, ended, jobs;               /* of the descriptors */
    uint16_t tag, oldest;                      /* of the next job, of the oldest that may run */
    int error;
};

/*
 * Checks that ``base`` is the core that this driver was made for, and resets it; interrupts are
 * disabled. Call it before the handler may call weft_irq().
 */
int weft_init(weft_core *core, void *base);

/*
 * Soft reset: jobs, results and weights are forgotten; the interrupt enables stay. A product under
 * way ends in WEFT_ABORTED, without ``done``. Every call that fails after it has sent something
 * does the same: the next product finds a core at rest.
 */
int weft_reset(weft_core *core);

/* Ends the job at work; its product ends in WEFT_ABORTED. */
void weft_abort(weft_core *core);

/* The whole product, polled: returns when the results are in c. ``done`` is not called. */
int weft_matmul(weft_core *core, const weft_product *product);

/* Matrices without gaps, sums as results. */
#if WEFT_BF16
int weft_matmul_bf16(weft_core *core, uint32_t m, uint32_t n, uint32_t k, const uint16_t *a,
                     const uint16_t *b, float *c);
#else
int weft_matmul_int8(weft_core *core, uint32_t m, uint32_t n, uint32_t k, const int8_t *a,
                     const int8_t *b, int32_t *c);
#endif

/*
 * The same without waiting for the end. weft_start() returns WEFT_BUSY once a job is at work whose
 * end raises irq_status.done; where it returns anything else, that is the end of the product. Then
 * call weft_step() until it returns something else than WEFT_BUSY; or enable that interrupt, before
 * or after weft_start(), and let the handler call weft_irq(), which calls ``done`` once, at the end
 * (that may be before weft_start() has returned). With no product under way weft_step() tells how
 * the last one ended. The product, and all that it points to, must stay until the end.
 */
int weft_start(weft_core *core, const weft_product *product);
int weft_step(weft_core *core);

/*
 * Interrupts, by the bits of irq_status. weft_irq() clears what it returns. It returns 0 where it
 * interrupted another call of the driver: the interrupt comes again when that has returned.
 */
void weft_enable(weft_core *core, uint32_t mask);
uint32_t weft_irq(weft_core *core);

#if WEFT_HAS_WINDOW
/*
 * The memory that the core may touch, from ``base`` to ``limit``, the last address, as the core sees
 * it (WEFT_ADDRESS); in whole WEFT_BYTES_IN bytes. A reset leaves it as it is.
 */
int weft_dma_window(weft_core *core, uint32_t base, uint32_t limit);
#endif

/*
 * Load B to stay; products with it load A alone. They are freed last loaded first. With bus dma,
 * address and stride of B are multiples of the size of a value.
 */
int weft_load_b(weft_core *core, weft_weights *weights, const void *b, ptrdiff_t b_k,
                ptrdiff_t b_col, uint32_t n, uint32_t k);
int weft_free_b(weft_core *core, const weft_weights *weights);

#if WEFT_HAS_TABLE
/* The activation table: entry i is for the result whose byte is i. */
int weft_load_table(weft_core *core, const uint8_t table[256]);
#endif

#ifdef __cplusplus
}
#endif

#endif
