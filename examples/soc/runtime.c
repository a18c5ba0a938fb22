/* The start of a program, and the functions that a compiler may call without a library. */
#include <stddef.h>

#include "runtime.h"

__asm__(".section .text.start,\"ax\",@progbits\n"
        ".global _start\n"
        "_start: call main\n"
        ".text\n");

void *memcpy(void *to, const void *from, size_t bytes)
{
    for (size_t n = 0; n < bytes; n++)
        ((char *)to)[n] = ((const char *)from)[n];
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    for (size_t n = 0; n < bytes; n++)
        ((char *)to)[n] = (char)value;
    return to;
}
