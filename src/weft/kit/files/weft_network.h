/*
 * Driver of a Weft network core behind a register bus: its memory, and lists.
 *
 * C99 without heap and library; 32 or 64 bits, any byte order. The core has no state that the
 * driver keeps, except for `weft_core`.
 *
 * A function that can fail returns an enum weft_error. Every wait is limited: it ends in
 * WEFT_ERR_TIMEOUT after core.poll_limit polls without progress.
 *
 * An interrupt handler may call weft_abort() and weft_irq_enable() at any time. It may call
 * weft_finish() while no other function but weft_start() works on the same core. All other functions
 * must not interrupt one another on the same core.
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

/* The value of a register, by its name in the register map: WEFT_REGISTER(core, net_cycles). */
#define WEFT_REGISTER(core, name) WEFT_READ((core)->base, offsetof(weft_t, name))

enum weft_error {
    WEFT_OK = 0,
    WEFT_BUSY = 1,           /* not an error: the list has not ended */
    WEFT_ERR_ID = -1,        /* no core of this design and version: make core and driver again */
    WEFT_ERR_TIMEOUT = -2,   /* no progress for core.poll_limit polls */
    WEFT_ERR_NULL = -3,      /* a required pointer is NULL */
    WEFT_ERR_RANGE = -4,     /* vectors outside of the memory, or a number outside of its limits */
    WEFT_ERR_REFUSED = -5,   /* a list runs, an inference is not finished, or no legal window */
    WEFT_ERR_ABORTED = -6,   /* the list was aborted, or the core was reset */
    WEFT_ERR_OPCODE = -7,    /* the list has an unknown descriptor */
    WEFT_ERR_FIELD = -8,     /* a field of a descriptor does not fit this core */
    WEFT_ERR_ADDRESS = -9,   /* a descriptor has an address outside of the window of lists */
    WEFT_ERR_DEADLOCK = -10, /* loads and jobs of the list wait for each other */
    WEFT_ERR_NOT_LOADED = -11, /* a network must be loaded: the core was reset, or a list failed */
    WEFT_ERR_BUS = -12,        /* the program memory answered an access with an error */
    WEFT_ERR_NO_ANSWER = -13,  /* the program memory did not answer */
    WEFT_ERR_IDLE = -14,       /* no inference was started, so none can be finished */
    WEFT_ERR_ALIGN = -15       /* the program memory is at no multiple of WEFT_BEAT_BYTES */
};

/* Text of an error, for messages. */
const char *weft_error_text(int error);

/* The state of a core, which is 0 before the first weft_init(): a static variable, or `= {0}`. */
typedef struct weft_core {
    void *base;
    uint32_t poll_limit; /* polls without progress before WEFT_ERR_TIMEOUT; 0 becomes 1,000,000 */
    const void *volatile loaded; /* the network whose weights are in the core, or NULL */
#if WEFT_PROGRAM_WORDS > 0
    uint8_t *program;       /* the program memory; weft_program() sets it */
    uint32_t program_bytes; /* that lists may use */
#endif
} weft_core;

/* Layout of the data of weft_write(): rows of pixels. */
typedef struct weft_layout {
    uint32_t run;      /* bytes of a pixel, 1..255 */
    uint32_t pitch;    /* vectors from pixel to pixel, 1..255 */
    uint32_t pixels;   /* of a row, 1..65535 */
    uint32_t row_step; /* address step from the last pixel of a row to the next row */
} weft_layout;

/* The address, as lists and registers have it, of a vector of the memory. */
static inline uint32_t weft_address(uint32_t vector)
{
    return (vector / WEFT_BANKS) << 8 | vector % WEFT_BANKS;
}

/*
 * Check that the core at `base` is the one of this kit, reset it, and let lists use its whole
 * memory. The memory keeps its contents, and a poll_limit that is not 0 stays.
 */
int weft_init(weft_core *core, void *base);

/*
 * Write bytes to the memory, from the first byte of a vector on; return when they are there.
 * Without a layout (NULL) they fill vectors that follow each other. The rest of the last vector, or
 * of the last vector of each pixel, becomes 0. Pixels beyond the memory are not written.
 */
int weft_write(weft_core *core, uint32_t vector, const weft_layout *layout, const void *data,
               uint32_t bytes);

/*
 * The same in parts: begin a transfer of `bytes`, give it all of them, and wait for its end. Each
 * part but the last one has a multiple of 4 bytes.
 */
int weft_write_begin(weft_core *core, uint32_t vector, const weft_layout *layout, uint32_t bytes);
int weft_write_more(weft_core *core, const void *data, uint32_t bytes);
int weft_write_end(weft_core *core);

/* Read bytes of the memory, from the first byte of a vector on. */
int weft_read(weft_core *core, uint32_t vector, void *data, uint32_t bytes);

#if WEFT_PROGRAM_WORDS > 0
/*
 * The program memory has lists, weights and parameters, which the core reads as a bus master.
 * WEFT_ADDRESS gives the bus address of a pointer: define it if the processor has virtual memory.
 * WEFT_FLUSH runs after the processor wrote memory that the core reads, WEFT_INVALIDATE before the
 * processor reads memory that the core wrote: define them as cache operations if a cache needs them.
 */
#ifndef WEFT_ADDRESS
#define WEFT_ADDRESS(pointer) ((uint32_t)(uintptr_t)(pointer))
#endif
#ifndef WEFT_FLUSH
#define WEFT_FLUSH(pointer, bytes) ((void)(pointer), (void)(bytes))
#endif
#ifndef WEFT_INVALIDATE
#define WEFT_INVALIDATE(pointer, bytes) ((void)(pointer), (void)(bytes))
#endif

/*
 * Let lists use this memory, and no other. Its address is a multiple of WEFT_BEAT_BYTES, and it has
 * at least WEFT_BANKS * WEFT_DEPTH bytes. Predicted cycles are for a multiple of 16 *
 * WEFT_BEAT_BYTES. Networks in different memories do not touch each other. No list may run.
 */
int weft_program(weft_core *core, void *memory, uint32_t bytes);

/*
 * Write or read bytes of the program memory, from the first byte of a vector on. Data that lie
 * there already are flushed and not copied.
 */
int weft_program_write(weft_core *core, uint32_t vector, const void *data, uint32_t bytes);
int weft_program_read(weft_core *core, uint32_t vector, void *data, uint32_t bytes);
#endif

/*
 * Jobs of the running or last list that have ended: after an error, the number of the failed one.
 * A load or a descriptor that cannot be read fails the first job that needs it.
 */
static inline uint32_t weft_jobs(const weft_core *core)
{
    return WEFT_REGISTER(core, net_status) >> 16;
}

/*
 * Write the text of an error to `text`, which has `bytes` bytes, and return it. If the error ended
 * the last list, the text has the number of its job: "..., in job 3".
 */
const char *weft_failure_text(const weft_core *core, int error, char *text, uint32_t bytes);

/*
 * Start the list at vector `list`, with its log from vector `log` on: of the memory, or of the
 * program memory if the core has one.
 */
int weft_start(weft_core *core, uint32_t list, uint32_t log);

/* WEFT_BUSY while the list runs, then WEFT_OK or its error. Clears its interrupt at its end. */
int weft_finish(weft_core *core);

/*
 * Wait for the end of a list: WEFT_OK or its error, as weft_finish(). The limit counts polls while
 * no job ends; after a time-out the list is aborted.
 */
int weft_wait(weft_core *core);

/* Whether a list runs. */
int weft_is_busy(const weft_core *core);

/* Start a list, and wait for its end. */
int weft_run(weft_core *core, uint32_t list, uint32_t log);

/*
 * End the running list. If none runs, nothing happens, and a loaded network stays loaded. Allowed
 * at any time, also in an interrupt handler.
 */
void weft_abort(weft_core *core);

/* Enable or disable the interrupt at the end of a list. weft_finish() clears it. */
void weft_irq_enable(weft_core *core, int enable);

#ifdef __cplusplus
}
#endif

#endif
