/* Functions through which the Python tests set up the driver. */
#include "weft.h"

uint32_t (*weft_test_read)(uint32_t);
void (*weft_test_write)(uint32_t, uint32_t);
uintptr_t weft_test_memory;

size_t weft_test_core_size(void);
size_t weft_test_core_size(void) { return sizeof(weft_core); }
