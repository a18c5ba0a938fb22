// Register accesses over AMBA APB3.

#include "mmio.h"

void set_clock(Vip& top, bool level) { top.pclk = level; }

void set_reset(Vip& top, bool active) { top.presetn = !active; }

bool drive(Vip& top, Access& access, int n) {
    top.psel = 1;
    top.penable = n > 0;
    top.pwrite = access.write;
    top.paddr = access.address;
    top.pwdata = access.value;
    top.eval();
    access.error = top.pslverr;
    bool done = top.penable && top.pready;
    if (done && !access.write) access.value = top.prdata;
    return done;
}

void release(Vip& top) { top.psel = top.penable = 0; }

void serve(Vip&) {}
