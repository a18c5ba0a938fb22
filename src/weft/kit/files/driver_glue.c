/* Functions through which the Python tests set up the driver. */
#include "weft.h"

uint32_t (*weft_test_read)(uint32_t);
void (*weft_test_write)(uint32_t, uint32_t);
uintptr_t weft_test_memory;

size_t weft_test_core_size(void);
void weft_test_poll_limit(weft_core *core, uint32_t limit);
void weft_test_done(weft_core *core, void (*done)(weft_core *, int, void *));
void weft_test_buffers(weft_core *core, uint8_t *buffer, size_t bytes, uint8_t *results,
                       size_t results_bytes,
                       int (*exchange)(weft_core *, const void *, size_t, void *, size_t,
                                       unsigned *));

size_t weft_test_core_size(void) { return sizeof(weft_core); }
void weft_test_poll_limit(weft_core *core, uint32_t limit) { core->poll_limit = limit; }
void weft_test_done(weft_core *core, void (*done)(weft_core *, int, void *)) { core->done = done; }
void weft_test_buffers(weft_core *core, uint8_t *buffer, size_t bytes, uint8_t *results,
                       size_t results_bytes,
                       int (*exchange)(weft_core *, const void *, size_t, void *, size_t,
                                       unsigned *))
{
#if !WEFT_FIFO
    core->buffer = buffer;
    core->buffer_bytes = bytes;
#endif
#if WEFT_STREAM
    core->results = results;
    core->results_bytes = results_bytes;
    core->exchange = exchange;
#endif
    (void)core, (void)buffer, (void)bytes, (void)results, (void)results_bytes, (void)exchange;
}
