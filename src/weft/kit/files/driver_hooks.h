/* Registers and memory that are not this machine's: for a driver in a test. */
#include <stdint.h>
extern uint32_t (*test_read)(uint32_t);
extern void (*test_write)(uint32_t, uint32_t);
extern uintptr_t test_memory;
#define WEFT_READ(base, offset) test_read((uint32_t)((uintptr_t)(base) + (offset)))
#define WEFT_WRITE(base, offset, value) test_write((uint32_t)((uintptr_t)(base) + (offset)), value)
#define WEFT_ADDRESS(pointer) ((uint32_t)((uintptr_t)(pointer) - test_memory))
