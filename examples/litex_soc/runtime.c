/* Console, clock, caches, and the functions that a compiler may call without a library. */
#include <stddef.h>

#include <generated/csr.h>
#include <generated/mem.h>
#include "port.h"
#include <generated/soc.h>
#include "runtime.h"

static void put(char c)
{
    while (uart_txfull_read())
        ;
    uart_rxtx_write(c);
}

void print(const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            put('\r');
        put(*text);
    }
}

/* A decimal number with a comma for each thousand, right-aligned. */
void print_number(uint32_t value, int width)
{
    char text[14];
    int n = 0, digits = 0;
    do {
        if (digits && digits % 3 == 0)
            text[n++] = ',';
        text[n++] = (char)('0' + value % 10);
        digits++;
    } while (value /= 10);
    for (int space = width - n; space > 0; space--)
        put(' ');
    while (n)
        put(text[--n]);
}

/* LiteX's timer counts down. */
void start_timer(void)
{
    timer0_en_write(0);
    timer0_reload_write(0);
    timer0_load_write(0xFFFFFFFF);
    timer0_en_write(1);
}

uint32_t cycles(void)
{
    timer0_update_value_write(1);
    return ~timer0_value_read();
}

/*
 * Drop the lines of the data cache, which writes through. Write the L2 cache back, and drop its
 * lines: it is direct-mapped, so reads of twice its size replace each line. Afterwards it has lines
 * of the firmware only, because link.ld places the memory of the core above these addresses.
 */
void flush_caches(void)
{
    flush_cpu_dcache();
    for (uint32_t offset = 0; offset < 2 * CONFIG_L2_SIZE; offset += 4)
        (void)*(volatile uint32_t *)(MAIN_RAM_BASE + offset);
    flush_cpu_dcache();
}

void finish(void)
{
#ifdef CSR_SIMULATION_BASE
    simulation_finish_write(1);
#endif
}

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
