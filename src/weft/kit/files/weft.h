/*
 * Driver of a Weft core, a matrix-multiply accelerator: C[m, n] = A[m, k] x B[k, n].
 *
 * Freestanding C99 for little-endian processors of 32 or 64 bits. It uses no heap and no library;
 * it includes <stdint.h> and <stddef.h> only.
 *
 *   static weft_core core;
 *   int error = weft_init(&core, (void *)0x30000000);
 *   if (error == WEFT_OK)
 *       error = weft_matmul_int8(&core, m, n, k, a, b, c);   (bf16 cores: weft_matmul_bf16)
 *
 * Sizes. M and N may have any size. K may have any size up to WEFT_K_MAX; for int8 that is the
 * largest K whose sums always fit 32 bits. The driver splits a product into jobs of the core.
 * WEFT_K_PANEL is the largest K that fits the core's buffers. If K exceeds it, a job passes its
 * sums on to the next job.
 *
 * Errors. Every function that can fail returns an enum weft_error. Every wait is limited: it ends
 * in WEFT_ERR_TIMEOUT after core.poll_limit polls without progress.
 *
 * Contexts. "Thread" is the main loop, or the one task that uses the core. If several tasks use it,
 * take a lock around each call. "Handler" is the core's interrupt handler. It must run on the same
 * processor as the thread.
 *
 *   weft_irq()                        handler; it may interrupt any other function of the driver
 *   weft_abort(), weft_irq_enable()   thread or handler, at any time
 *   all others                        thread, or the callback core.done
 *
 * A function locks the core until it returns. If weft_irq() interrupts such a function, it masks
 * the core's interrupt and returns 0. The function unmasks the interrupt when it returns, and the
 * handler runs again: no interrupt is lost. Any other function that finds the core locked returns
 * WEFT_ERR_IN_USE.
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
 * Read and write a 32-bit register at a byte offset. The defaults are for a memory-mapped bus. For
 * any other access define both macros before this header (for example with -include port.h).
 * ``base`` is the argument of weft_init().
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
 * For a core that is a bus master (bus dma). WEFT_ADDRESS gives the bus address of a pointer:
 * define it if the processor has virtual memory. WEFT_DMA_FLUSH runs before the core reads memory
 * that the processor wrote: define it as a memory barrier or a cache clean if the processor needs
 * one. The caller must make sure that no cache holds old copies of the results after a product.
 */
#ifndef WEFT_ADDRESS
#define WEFT_ADDRESS(pointer) ((uint32_t)(uintptr_t)(pointer))
#endif
#ifndef WEFT_DMA_FLUSH
#define WEFT_DMA_FLUSH() ((void)0)
#endif

/*
 * A compiler barrier: the compiler must not move memory accesses across it. A barrier instruction
 * is not needed, because thread and handler run on the same processor.
 */
#ifndef WEFT_BARRIER
#ifdef __GNUC__
#define WEFT_BARRIER() __asm__ volatile("" ::: "memory")
#else
#error "WEFT_BARRIER() must be defined for this compiler, as a barrier against its reordering"
#endif
#endif

/* The value of a register, by its name in the register map: WEFT_REGISTER(core, busy). */
#define WEFT_REGISTER(core, name) WEFT_READ((core)->base, offsetof(weft_t, name))

enum weft_error {
    WEFT_OK = 0,
    WEFT_BUSY = 1,           /* not an error: the product is not finished */
    WEFT_ERR_ID = -1,        /* no core of this Config and version: make core and driver again */
    WEFT_ERR_TIMEOUT = -2,   /* no progress for core.poll_limit polls */
    WEFT_ERR_SHAPE = -3,     /* M, N or K is 0 or too large, or does not match the weights */
    WEFT_ERR_STRIDE = -4,    /* a stride or an alignment that this bus does not support */
    WEFT_ERR_NO_SPACE = -5,  /* it does not fit the core's buffers, or the caller's */
    WEFT_ERR_ABORTED = -6,   /* the product was aborted */
    WEFT_ERR_REJECTED = -7,  /* the core rejected a job */
    WEFT_ERR_MEMORY = -8,    /* a memory access of the core ended in a bus error */
    WEFT_ERR_STALE = -9,     /* a reset has freed these weights, or they are not the last loaded */
    WEFT_ERR_EPILOGUE = -10, /* product.epilogue or bias is not supported, or columns is NULL */
    WEFT_ERR_IN_USE = -11,   /* a product is in progress, or this call interrupted another one */
    WEFT_ERR_NULL = -12,     /* a required pointer is NULL */
    WEFT_ERR_RANGE = -13     /* addresses beyond 32 bits, or outside the core's window */
};

/* Bits of product.epilogue. 0: the results are the sums, int32_t or float. */
enum {
    WEFT_REQUANTIZE = 16, /* int8 cores: requantize to int8, with the entries in `columns` */
    WEFT_TABLE = 32,      /* ... then replace by an entry of the table of weft_load_table() */
    WEFT_CLAMP = 256,     /* bf16 cores: clamp to the limits in `columns` */
    WEFT_ROUND = 512      /* bf16 cores: round to bfloat16 */
};

#if WEFT_BF16
/* Limits of the results of a column; they must not be NaN. */
typedef struct weft_column {
    float low, high;
} weft_column;
#else
/* Requantization of a column: ``clamp(scale(sum + bias) + zero, low, high)``. */
typedef struct weft_column {
    int32_t bias;
    uint32_t multiplier; /* 0 to 2^31 - 1; in mode onnx the bits of a float */
    int8_t shift;        /* -31 to 31; positive shifts left */
    int8_t b_zero;       /* zero point of B; 0 if the Config has no b_zero_point */
    int16_t zero;        /* zero point of the results */
    int16_t low, high;   /* smallest and largest result */
} weft_column;
#endif

/* A matrix B that stays in the core's buffer. weft_load_b() fills it in. */
typedef struct weft_weights {
    uint32_t n, k, page, generation;
} weft_weights;

/*
 * A product C[m, n] = A[m, k] x B[k, n], with operands of int8_t, or of bfloat16 as uint16_t.
 *
 * Strides are in bytes and may be negative. For a transposed matrix swap its two strides. The
 * values of a row of C are adjacent.
 *
 * Bus dma only: one stride of A must be the size of a value, and one of B too. Addresses and
 * strides of A and B must be multiples of that size. Address and stride of C must be multiples of
 * WEFT_RESULT_ALIGN bytes, or of WEFT_NARROW_RESULT_ALIGN if results are int8 or bfloat16.
 */
typedef struct weft_product {
    uint32_t m, n, k;            /* 1 or more; k up to WEFT_K_MAX */
    const void *a;
    ptrdiff_t a_row_stride;      /* from a row of A to the next */
    ptrdiff_t a_k_stride;        /* from a column of A to the next */
    const void *b;               /* ignored if weights is set */
    ptrdiff_t b_k_stride;        /* from a row of B to the next */
    ptrdiff_t b_col_stride;      /* from a column of B to the next */
    const weft_weights *weights; /* from weft_load_b(), or NULL */
    void *c;
    ptrdiff_t c_row_stride;      /* from a row of C to the next */
    unsigned epilogue;           /* 0, or WEFT_REQUANTIZE and so on */
    const weft_column *columns;  /* n entries, if WEFT_REQUANTIZE or WEFT_CLAMP is set */
    const float *bias;           /* bf16 cores: n initial values of the sums, or NULL */
} weft_product;

typedef struct weft_core weft_core;

struct weft_core {
    /*
     * Set by weft_init(), except for a poll_limit that is not 0: the struct is 0 before the first
     * call. The caller may change them while no product is in progress.
     */
    void *base;          /* address of the registers */
    uint32_t poll_limit; /* polls without progress before WEFT_ERR_TIMEOUT; 0 becomes 1,000,000 */
    /*
     * Callback, or NULL. weft_irq() calls it in the handler when a product of weft_start() ends;
     * `error` is WEFT_OK or the error. It may start the next product.
     */
    void (*done)(weft_core *core, int error, void *context);
    void *context; /* passed to the callback */
#if !WEFT_FIFO
    /* Set by the caller: memory for packed data, aligned to WEFT_BYTES_IN. */
    uint8_t *buffer;
    size_t buffer_bytes;
#endif
#if WEFT_STREAM
    /*
     * Set by the caller: the function that moves data over the two streams. It sends `bytes` bytes
     * of `commands`. If result_bytes is not 0, it receives one packet of at most result_bytes bytes
     * at the same time, and stores the tuser of the packet's last word in *status. It returns
     * WEFT_OK or an error. `results` is memory for one packet.
     */
    int (*exchange)(weft_core *core, const void *commands, size_t bytes, void *results,
                    size_t result_bytes, unsigned *status);
    uint8_t *results;
    size_t results_bytes;
#endif
    /* Private to the driver. */
    volatile uint32_t locked;              /* a function of the driver is running */
    volatile uint32_t irq_deferred;        /* weft_irq() has masked the interrupt meanwhile */
    uint32_t irq_mask;                     /* argument of the last weft_irq_enable() */
    const weft_product *product;           /* in progress, or NULL */
    int last_result;                       /* WEFT_OK or error of the last product */
    uint32_t block_m, block_n;             /* rows of A, columns of B that are loaded together */
    uint32_t job_m, job_n, job_k;          /* largest job */
    uint32_t pitch;                        /* pages of a panel */
    uint32_t block_row, block_col;         /* first row, column of the next job's block */
    uint32_t row, col, k, height, width;   /* the next job */
    uint32_t resident_row, resident_col;   /* first row, column of the block in the core */
    uint32_t page_a, page_b;               /* ... and its first pages */
    uint32_t b_free_page, generation;      /* first page after the weights; number of resets */
    uint32_t irq_events;                   /* bits of irq_status that were cleared */
    uint32_t idle_polls;                   /* polls since the last progress */
    uint32_t cmd_free, job_active;         /* FIFO ports */
    size_t buffer_used;                    /* bytes of buffer */
    uint32_t next_stage, jobs_done, jobs_submitted; /* bus dma */
    uint16_t next_tag, oldest_tag;         /* of the next job, of the oldest unfinished job */
    int error;                             /* while data is packed */
};

/*
 * Check that `base` is the address of a core of this driver's Config, and reset it. Interrupts are
 * disabled. Call it before the handler can call weft_irq().
 *
 * Blocks until the reset is complete. Returns WEFT_OK, WEFT_ERR_ID or WEFT_ERR_TIMEOUT.
 */
int weft_init(weft_core *core, void *base);

/*
 * Soft reset. The core drops its jobs, results and weights; irq_enable keeps its value. A product
 * in progress ends in WEFT_ERR_ABORTED, and the callback is not called. An error after commands
 * were sent does the same reset, so the core is idle for the next product.
 *
 * Blocks until the reset is complete. Returns WEFT_OK, WEFT_ERR_TIMEOUT or WEFT_ERR_IN_USE.
 */
int weft_reset(weft_core *core);

/* Abort the job that the core computes. Its product ends in WEFT_ERR_ABORTED. Does not block. */
void weft_abort(weft_core *core);

/*
 * Compute a product. Blocks until the results are in C; polls, and does not call the callback.
 * Returns WEFT_OK or an error.
 */
int weft_matmul(weft_core *core, const weft_product *product);

/* The same for matrices in row-major order without gaps. The results are the sums. */
#if WEFT_BF16
int weft_matmul_bf16(weft_core *core, uint32_t m, uint32_t n, uint32_t k, const uint16_t *a,
                     const uint16_t *b, float *c);
#else
int weft_matmul_int8(weft_core *core, uint32_t m, uint32_t n, uint32_t k, const int8_t *a,
                     const int8_t *b, int32_t *c);
#endif

/*
 * Start a product. Blocks while commands are sent, until a job runs whose end raises
 * irq_status.done; then it returns WEFT_BUSY. Any other value is the end of the product: WEFT_OK or
 * an error. Bus stream never returns WEFT_BUSY: it computes the whole product.
 *
 * After WEFT_BUSY either call weft_step() until it returns another value, or let the handler call
 * weft_irq(), with the done interrupt enabled before or after weft_start(). The handler may end the
 * product before weft_start() returns. The product and all that it points to must stay valid until
 * the end.
 */
int weft_start(weft_core *core, const weft_product *product);

/*
 * Advance the product by one step: check for results and read them, or send the next job. It waits
 * for the core only while commands are sent. Returns WEFT_BUSY, WEFT_OK at the end, or an error. If
 * no product is in progress, it returns the result of the last one.
 */
int weft_step(weft_core *core);

/*
 * Enable the interrupts in `mask`, bits of irq_status (WEFT__IRQ_STATUS__DONE_bm and so on), and
 * disable all others. Does not block.
 */
void weft_irq_enable(weft_core *core, uint32_t mask);

/*
 * Interrupt handler: clears the bits of irq_status and returns them. It advances the product of
 * weft_start(), so it also reads results and sends the next job. At the end of the product it calls
 * core.done once. If it interrupted another function of the driver, it returns 0, and the
 * interrupt occurs again after that function.
 */
uint32_t weft_irq(weft_core *core);

#if WEFT_HAS_WINDOW
/*
 * Limit the memory that the core may access to the addresses from `base` to `limit`, both included.
 * They are bus addresses (WEFT_ADDRESS), and the core rounds the window out to whole words of
 * WEFT_BYTES_IN bytes. A reset does not change the window. Does not block.
 *
 * Returns WEFT_OK, WEFT_ERR_RANGE if base > limit, or WEFT_ERR_IN_USE.
 */
int weft_dma_window(weft_core *core, uint32_t base, uint32_t limit);
#endif

/*
 * Load B[k, n] into the core's buffer, where it stays until weft_free_b() or a reset. Products with
 * these weights load A only. K is at most WEFT_K_PANEL, N at most 65,535. Strides have the same
 * meaning as in weft_product. With bus dma, the address and both strides of B are multiples of the
 * size of a value, and one stride equals it.
 *
 * Blocks until B is sent. Returns WEFT_OK or an error; WEFT_ERR_NO_SPACE if B does not fit.
 */
int weft_load_b(weft_core *core, weft_weights *weights, const void *b, ptrdiff_t b_k_stride,
                ptrdiff_t b_col_stride, uint32_t n, uint32_t k);

/*
 * Free the weights that were loaded last. Does not access the core. Returns WEFT_OK,
 * WEFT_ERR_STALE if they are not the last ones or a reset has freed them, WEFT_ERR_NULL or
 * WEFT_ERR_IN_USE.
 */
int weft_free_b(weft_core *core, const weft_weights *weights);

#if WEFT_HAS_TABLE
/*
 * Load the activation table for WEFT_TABLE: a result whose byte is i becomes table[i]. With bus
 * stream or dma it needs core.buffer. Blocks until the table is sent. Returns WEFT_OK or an error.
 */
int weft_load_table(weft_core *core, const uint8_t table[256]);
#endif

#ifdef __cplusplus
}
#endif

#endif
