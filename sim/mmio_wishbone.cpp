// Register accesses over Wishbone, in classic cycles.

#include "mmio.h"

void set_clock(Vip& top, bool level) { top.wb_clk_i = level; }

void set_reset(Vip& top, bool active) { top.wb_rst_i = active; }

bool drive(Vip& top, Access& access, int) {
    top.wb_cyc_i = top.wb_stb_i = 1;
    top.wb_we_i = access.write;
    top.wb_adr_i = access.address >> 2;
    top.wb_sel_i = 15;
    top.wb_dat_i = access.value;
    top.eval();
    access.error = top.wb_err_o;
    bool done = top.wb_ack_o || top.wb_err_o;
    if (done && !access.write) access.value = top.wb_dat_o;
    return done;
}

void release(Vip& top) { top.wb_cyc_i = top.wb_stb_i = 0; }

void serve(Vip&) {}
