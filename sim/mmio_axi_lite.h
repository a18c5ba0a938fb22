// Register accesses over AXI4-Lite.

#pragma once

#include "mmio.h"

void set_clock(Vip& top, bool level) { top.aclk = level; }

void set_reset(Vip& top, bool active) { top.aresetn = !active; }

bool drive(Vip& top, Access& access, int n) {
    static bool aw, w, ar;  // not accepted yet
    if (n == 0) {
        aw = w = access.write;
        ar = !access.write;
    }
    top.s_axil_awaddr = top.s_axil_araddr = access.address;
    top.s_axil_wdata = access.value;
    top.s_axil_wstrb = 15;
    top.s_axil_bready = top.s_axil_rready = 1;
    top.s_axil_awvalid = aw;
    top.s_axil_wvalid = w;
    top.s_axil_arvalid = ar;
    top.eval();
    access.error = (access.write ? top.s_axil_bresp : top.s_axil_rresp) != 0;
    bool done = access.write ? top.s_axil_bvalid : top.s_axil_rvalid;
    if (done && !access.write) access.value = top.s_axil_rdata;
    // A transfer that is accepted at this clock edge is not offered again.
    aw &= !top.s_axil_awready;
    w &= !top.s_axil_wready;
    ar &= !top.s_axil_arready;
    return done;
}

void release(Vip&) {}  // no channel is valid after an answer
