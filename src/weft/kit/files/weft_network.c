/* Memory and lists of a network core, through its registers. */
#include "weft.h"

#define WRITE(core, name, value) WEFT_WRITE((core)->base, offsetof(weft_t, name), value)
#define LIST_EVENTS (WEFT__IRQ_STATUS__DONE_bm | WEFT__IRQ_STATUS__FAILED_bm)

/*
 * Memory is moved by words where its bytes lie in it as in a register of the core: aligned, on a
 * little-endian processor, with a compiler that lets a word alias any data.
 */
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
typedef uint32_t word_of_bytes __attribute__((may_alias));
#define IS_WORDS(pointer) ((uintptr_t)(pointer) % 4 == 0)
#else
typedef uint32_t word_of_bytes;
#define IS_WORDS(pointer) 0
#endif
#define WORD_AT(pointer) (*(word_of_bytes *)(uintptr_t)(pointer))

const char *weft_error_text(int error)
{
    switch (error) {
    case WEFT_OK: return "no error";
    case WEFT_BUSY: return "the list has not ended";
    case WEFT_ERR_ID:
        return "no network core of this NetworkCoreConfig and version at the address: generate the"
               " kit again, and build and load the bitstream and the program again";
    case WEFT_ERR_TIMEOUT: return "no progress for poll_limit polls";
    case WEFT_ERR_NULL: return "a required pointer is NULL";
    case WEFT_ERR_RANGE:
        return "vectors outside of the memory, a layout with a number outside of its limits, or a"
               " program memory with less than a vector for each bank";
    case WEFT_ERR_REFUSED:
        return "a list runs already, an inference was started and not finished, or the window of"
               " lists is not legal";
    case WEFT_ERR_ABORTED: return "the list was aborted, or the core was reset";
    case WEFT_ERR_OPCODE: return "the list has an unknown descriptor";
    case WEFT_ERR_FIELD: return "a field of a descriptor does not fit the core";
    case WEFT_ERR_ADDRESS: return "a descriptor has an address outside of the window of lists";
    case WEFT_ERR_DEADLOCK: return "loads and jobs of the list wait for each other";
    case WEFT_ERR_NOT_LOADED: return "the network must be loaded";
    case WEFT_ERR_BUS: return "the program memory answered an access with an error";
    case WEFT_ERR_NO_ANSWER: return "the program memory did not answer";
    case WEFT_ERR_IDLE: return "no inference was started";
    case WEFT_ERR_ALIGN:
        return "the address of the program memory must be a multiple of WEFT_BEAT_BYTES";
    default: return "unknown error";
    }
}

/* Append text as far as it fits; the end of the text. */
static char *append(char *to, const char *last, const char *from)
{
    while (*from != '\0' && to < last)
        *to++ = *from++;
    *to = '\0';
    return to;
}

const char *weft_failure_text(const weft_core *core, int error, char *text, uint32_t bytes)
{
    char number[6];
    uint32_t job, n = sizeof number - 1;
    char *to;
    if (core == NULL || text == NULL || bytes == 0)
        return weft_error_text(error);
    to = append(text, text + bytes - 1, weft_error_text(error));
    if ((error > WEFT_ERR_ABORTED || error < WEFT_ERR_DEADLOCK) && error != WEFT_ERR_BUS
        && error != WEFT_ERR_NO_ANSWER)
        return text; /* not of a list */
    number[n] = '\0';
    for (job = weft_jobs(core); n == sizeof number - 1 || job > 0; job /= 10)
        number[--n] = (char)('0' + job % 10);
    to = append(to, text + bytes - 1, ", in job ");
    append(to, text + bytes - 1, number + n);
    return text;
}

/* Wait until a bit of STATUS is 0. */
static int wait_for(weft_core *core, uint32_t bit)
{
    uint32_t polls;
    for (polls = 0; polls <= core->poll_limit; polls++)
        if (!(WEFT_REGISTER(core, status) & bit))
            return WEFT_OK;
    return WEFT_ERR_TIMEOUT;
}

/* A soft reset ends a list and a transfer, and empties the buffers of weights. */
static int reset(weft_core *core)
{
    core->loaded = NULL;
    WRITE(core, control, WEFT__CONTROL__RESET_bm);
    return wait_for(core, WEFT__STATUS__RESET_BUSY_bm);
}

int weft_init(weft_core *core, void *base)
{
    int error;
    if (core == NULL)
        return WEFT_ERR_NULL;
    core->base = base;
    if (core->poll_limit == 0)
        core->poll_limit = 1000000;
    core->loaded = NULL;
    if (WEFT_REGISTER(core, magic) != WEFT_MAGIC || WEFT_REGISTER(core, version) != WEFT_VERSION
        || WEFT_REGISTER(core, kind) != WEFT_KIND || WEFT_REGISTER(core, hash) != WEFT_HASH)
        return WEFT_ERR_ID;
#if WEFT_PROGRAM_WORDS > 0
    core->program = NULL;
    core->program_bytes = 0;
#endif
    WRITE(core, irq_enable, 0);
    error = reset(core);
    WRITE(core, base, 0);
    WRITE(core, limit, WEFT_WORDS);
    return error;
}

/* Whether bytes from a vector on are in the memory. */
static int inside(uint32_t vector, uint32_t bytes)
{
    return vector < WEFT_VECTORS && (bytes - 1) / WEFT_DEPTH < WEFT_VECTORS - vector;
}

/* Whether bytes from a vector on are in memories that are written. */
static int writable(uint32_t vector, uint32_t bytes)
{
#ifdef WEFT_REGION
    static const uint32_t vectors[] = WEFT_REGIONS;
    const uint32_t region = vector / WEFT_REGION, first = vector % WEFT_REGION;
    return region < sizeof vectors / sizeof vectors[0] && first < vectors[region]
           && (bytes - 1) / WEFT_DEPTH < vectors[region] - first;
#else
    return inside(vector, bytes);
#endif
}

/* Whether the numbers of a layout fit their fields. */
static int fits(const weft_layout *layout)
{
    return layout->run - 1 < 255 && layout->pitch - 1 < 255 && layout->pixels - 1 < 65535;
}

/* Check and describe a transfer, when the one before has ended. */
static int prepare(weft_core *core, uint32_t vector, const weft_layout *layout, uint32_t bytes,
                   int (*allowed)(uint32_t, uint32_t))
{
    int error;
    if (core == NULL)
        return WEFT_ERR_NULL;
    if (bytes == 0)
        return WEFT_OK;
    if (!allowed(vector, layout ? 1 : bytes) || (layout && !fits(layout)))
        return WEFT_ERR_RANGE;
    error = wait_for(core, WEFT__STATUS__MEMORY_BUSY_bm);
    if (error != WEFT_OK)
        return error;
    WRITE(core, memory_address, weft_address(vector));
    WRITE(core, memory_layout,
          layout ? layout->run | layout->pitch << 8 | layout->pixels << 16 : 0);
    WRITE(core, memory_row_step, layout ? layout->row_step : 0);
    return WEFT_OK;
}

/* Count polls without a word in a FIFO; after too many reset the core. */
static inline int progress(weft_core *core, uint32_t words, uint32_t *polls)
{
    *polls = words > 0 ? 0 : *polls + 1;
    if (*polls <= core->poll_limit)
        return WEFT_OK;
    (void)reset(core);
    return WEFT_ERR_TIMEOUT;
}

/* The next word of the data, of which 1 to 4 bytes are left. */
static uint32_t assembled(const uint8_t *from, uint32_t bytes)
{
    uint32_t word = from[0];
    if (bytes > 1)
        word |= (uint32_t)from[1] << 8;
    if (bytes > 2)
        word |= (uint32_t)from[2] << 16;
    if (bytes > 3)
        word |= (uint32_t)from[3] << 24;
    return word;
}

int weft_write_begin(weft_core *core, uint32_t vector, const weft_layout *layout, uint32_t bytes)
{
    int error = prepare(core, vector, layout, bytes, writable);
    if (error == WEFT_OK && bytes > 0)
        WRITE(core, memory_write, bytes);
    return error;
}

int weft_write_more(weft_core *core, const void *data, uint32_t bytes)
{
    const uint8_t *from = (const uint8_t *)data;
    uint32_t space, words, polls = 0;
    int error;
    if (core == NULL || (data == NULL && bytes > 0))
        return WEFT_ERR_NULL;
    while (bytes > 0) {
        space = WEFT_REGISTER(core, write_fifo_free);
        error = progress(core, space, &polls);
        if (error != WEFT_OK)
            return error;
        words = space < bytes / 4 ? space : bytes / 4;
        space -= words;
        bytes -= 4 * words;
        if (IS_WORDS(from))
            for (; words >= 4; words -= 4, from += 16) { /* loops cost more than accesses */
                WRITE(core, write_fifo, WORD_AT(from));
                WRITE(core, write_fifo, WORD_AT(from + 4));
                WRITE(core, write_fifo, WORD_AT(from + 8));
                WRITE(core, write_fifo, WORD_AT(from + 12));
            }
        for (; IS_WORDS(from) && words > 0; words--, from += 4)
            WRITE(core, write_fifo, WORD_AT(from));
        for (; words > 0; words--, from += 4)
            WRITE(core, write_fifo, assembled(from, 4));
        if (bytes < 4 && bytes > 0 && space > 0) {
            WRITE(core, write_fifo, assembled(from, bytes));
            bytes = 0;
        }
    }
    return WEFT_OK;
}

int weft_write_end(weft_core *core)
{
    if (core == NULL)
        return WEFT_ERR_NULL;
    return wait_for(core, WEFT__STATUS__MEMORY_BUSY_bm);
}

int weft_write(weft_core *core, uint32_t vector, const weft_layout *layout, const void *data,
               uint32_t bytes)
{
    int error = data == NULL && bytes > 0 ? WEFT_ERR_NULL
                                          : weft_write_begin(core, vector, layout, bytes);
    if (error == WEFT_OK)
        error = weft_write_more(core, data, bytes);
    return error == WEFT_OK && bytes > 0 ? weft_write_end(core) : error;
}

int weft_read(weft_core *core, uint32_t vector, void *data, uint32_t bytes)
{
    uint8_t *to = (uint8_t *)data;
    uint32_t level, n, word, polls = 0;
    int error = data == NULL && bytes > 0 ? WEFT_ERR_NULL : prepare(core, vector, NULL, bytes, inside);
    if (error != WEFT_OK || bytes == 0)
        return error;
    WRITE(core, memory_read, bytes);
    while (bytes > 0) {
        level = WEFT_REGISTER(core, read_fifo_level);
        error = progress(core, level, &polls);
        if (error != WEFT_OK)
            return error;
        for (; level > 0; level--) {
            word = WEFT_REGISTER(core, read_fifo);
            if (bytes >= 4 && IS_WORDS(to)) {
                WORD_AT(to) = word;
                to += 4;
                bytes -= 4;
                continue;
            }
            for (n = 0; n < 4 && bytes > 0; n++, bytes--, word >>= 8)
                *to++ = (uint8_t)word;
        }
    }
    return WEFT_OK;
}

#if WEFT_PROGRAM_WORDS > 0
int weft_program(weft_core *core, void *memory, uint32_t bytes)
{
    uint32_t words = bytes / (WEFT_BANKS * WEFT_DEPTH);
    if (core == NULL || memory == NULL)
        return WEFT_ERR_NULL;
    if (words == 0)
        return WEFT_ERR_RANGE;
    if (WEFT_ADDRESS(memory) % WEFT_BEAT_BYTES != 0)
        return WEFT_ERR_ALIGN;
    if (words > WEFT_PROGRAM_WORDS)
        words = WEFT_PROGRAM_WORDS;
    core->loaded = NULL;
    core->program = (uint8_t *)memory;
    core->program_bytes = words * (WEFT_BANKS * WEFT_DEPTH);
    WRITE(core, program_base, WEFT_ADDRESS(memory));
    WRITE(core, program_limit, words);
    return WEFT_OK;
}

/* Copy bytes to memory that does not overlap them. */
static void copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    if (IS_WORDS(to) && IS_WORDS(from)) {
        for (; bytes >= 16; bytes -= 16, to += 16, from += 16) {
            WORD_AT(to) = WORD_AT(from);
            WORD_AT(to + 4) = WORD_AT(from + 4);
            WORD_AT(to + 8) = WORD_AT(from + 8);
            WORD_AT(to + 12) = WORD_AT(from + 12);
        }
        for (; bytes >= 4; bytes -= 4, to += 4, from += 4)
            WORD_AT(to) = WORD_AT(from);
    }
    for (; bytes > 0; bytes--)
        *to++ = *from++;
}

/* The byte at a vector of the program memory, and the error of an access. */
static uint8_t *program_at(const weft_core *core, uint32_t vector, const void *data, uint32_t bytes,
                           int *error)
{
    *error = WEFT_ERR_NULL;
    if (core == NULL || core->program == NULL || (data == NULL && bytes > 0))
        return NULL;
    *error = WEFT_ERR_RANGE;
    if (vector > core->program_bytes / WEFT_DEPTH
        || bytes > core->program_bytes - vector * WEFT_DEPTH)
        return NULL;
    *error = WEFT_OK;
    return core->program + vector * WEFT_DEPTH;
}

int weft_program_write(weft_core *core, uint32_t vector, const void *data, uint32_t bytes)
{
    const uint8_t *from = (const uint8_t *)data;
    int error;
    uint8_t *to = program_at(core, vector, data, bytes, &error);
    if (error != WEFT_OK)
        return error;
    if (to != from)
        copy(to, from, bytes);
    WEFT_FLUSH(to, bytes);
    return WEFT_OK;
}

int weft_program_read(weft_core *core, uint32_t vector, void *data, uint32_t bytes)
{
    uint32_t n;
    uint8_t *to = (uint8_t *)data;
    int error;
    const volatile uint8_t *from = program_at(core, vector, data, bytes, &error);
    if (error != WEFT_OK)
        return error;
    WEFT_INVALIDATE(from, bytes);
    for (n = 0; n < bytes; n++) /* few: the log, which the core writes at any time */
        to[n] = from[n];
    return WEFT_OK;
}

/* Vectors in which lists and logs may lie. */
#define LIST_VECTORS(core) ((core)->program_bytes / WEFT_DEPTH)
#else
#define LIST_VECTORS(core) WEFT_VECTORS
#endif

int weft_start(weft_core *core, uint32_t list, uint32_t log)
{
    if (core == NULL)
        return WEFT_ERR_NULL;
    if (list >= LIST_VECTORS(core) || log >= LIST_VECTORS(core))
        return WEFT_ERR_RANGE;
    WRITE(core, list_address, weft_address(list));
    WRITE(core, log_address, weft_address(log));
    WRITE(core, irq_status, WEFT__IRQ_STATUS__REFUSED_bm);
    WRITE(core, control, WEFT__CONTROL__START_bm);
    (void)WEFT_REGISTER(core, status); /* the start needs a cycle */
    return WEFT_REGISTER(core, irq_status) & WEFT__IRQ_STATUS__REFUSED_bm ? WEFT_ERR_REFUSED
                                                                          : WEFT_OK;
}

int weft_finish(weft_core *core)
{
    static const int errors[] = {WEFT_ERR_ABORTED,  WEFT_ERR_OPCODE,  WEFT_ERR_FIELD,
                                 WEFT_ERR_ADDRESS,  WEFT_ERR_DEADLOCK, WEFT_ERR_ABORTED,
                                 WEFT_ERR_BUS,      WEFT_ERR_NO_ANSWER};
    uint32_t status;
    if (core == NULL)
        return WEFT_ERR_NULL;
    if (weft_is_busy(core))
        return WEFT_BUSY;
    WRITE(core, irq_status, LIST_EVENTS);
    status = WEFT_REGISTER(core, net_status);
    if ((status & 0xFF) == 2) /* done */
        return WEFT_OK;
    core->loaded = NULL;
    status = status >> 8 & 0xFF;
    return errors[status < sizeof errors / sizeof *errors ? status : 0];
}

int weft_wait(weft_core *core)
{
    uint32_t polls = 0, status, last = 0;
    int error;
    while ((error = weft_finish(core)) == WEFT_BUSY) {
        status = WEFT_REGISTER(core, net_status);
        polls = status == last ? polls + 1 : 0;
        last = status;
        if (polls > core->poll_limit) {
            weft_abort(core);
            (void)wait_for(core, WEFT__STATUS__LIST_BUSY_bm);
            (void)weft_finish(core); /* no later list has its interrupt */
            return WEFT_ERR_TIMEOUT;
        }
    }
    return error;
}

int weft_run(weft_core *core, uint32_t list, uint32_t log)
{
    int error = weft_start(core, list, log);
    return error == WEFT_OK ? weft_wait(core) : error;
}

int weft_is_busy(const weft_core *core)
{
    return (WEFT_REGISTER(core, status) & WEFT__STATUS__LIST_BUSY_bm) != 0;
}

void weft_abort(weft_core *core)
{
    if (!weft_is_busy(core))
        return; /* its buffers keep their weights */
    core->loaded = NULL;
    WRITE(core, control, WEFT__CONTROL__ABORT_bm);
}

void weft_irq_enable(weft_core *core, int enable)
{
    WRITE(core, irq_enable, enable ? WEFT__IRQ_ENABLE__DONE_bm : 0);
}
