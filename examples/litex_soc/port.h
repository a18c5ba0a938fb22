/* The memory of the driver, for a VexRiscv with the L2 cache of LiteX. */
#ifndef PORT_H
#define PORT_H

#ifndef __ASSEMBLER__
void flush_caches(void);
#endif

/* The core reads SDRAM beside the caches: write dirty lines back before, drop old lines after. */
#define WEFT_FLUSH(pointer, bytes) flush_caches()
#define WEFT_INVALIDATE(pointer, bytes) flush_caches()

/* link.ld places the program above the addresses that flush_caches() reads. */
#define NET_PROGRAM __attribute__((section(".program")))

#endif
