// An IP core with AXI4-Lite and FIFO ports.

#include "mmio_axi_lite.h"

void serve(Vip&) {}
