/* Console, clock and the functions that a compiler may call without a library. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <stdint.h>

void print(const char *text);
void print_number(uint32_t value, int width);
void start_timer(void);
uint32_t cycles(void);  /* clock cycles since start_timer(); 32 bits */
void finish(void);      /* ends a simulation; on a board it does nothing */

#endif
