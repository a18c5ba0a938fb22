/* Register accesses and bus addresses for a driver under test: callbacks into Python. */
#include <stdint.h>
extern uint32_t (*weft_test_read)(uint32_t);
extern void (*weft_test_write)(uint32_t, uint32_t);
extern uintptr_t weft_test_memory;
#define WEFT_READ(base, offset) weft_test_read((uint32_t)((uintptr_t)(base) + (offset)))
#define WEFT_WRITE(base, offset, value) \
    weft_test_write((uint32_t)((uintptr_t)(base) + (offset)), value)
#define WEFT_ADDRESS(pointer) ((uint32_t)((uintptr_t)(pointer) - weft_test_memory))
