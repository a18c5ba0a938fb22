// The registers of a simulated IP core, over stdin and stdout.
//
// A request is 9 bytes: 'R' or 'W', the byte address, and the value to write. An answer is 5 bytes:
// 1 for a bus error or 0, and the value that was read. Numbers have 32 bits, the low byte first. The
// clock runs during accesses only. With the macro WISHBONE the bus is Wishbone, with classic cycles;
// otherwise it is AXI4-Lite.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "Vip.h"
#include "verilated.h"

namespace {

constexpr int LIMIT = 100000;  // cycles of an access, at most
constexpr int IDLE = 4;        // cycles after each access

struct Access {
    bool write;
    uint32_t address, value;
    bool error;
};

class Ip {
public:
    Ip() {
        reset(true);
        for (int n = 0; n < 4; n++) cycle();
        reset(false);
        cycle();
    }

    // Performs an access; false if it does not end.
    bool perform(Access& access);

private:
    void cycle() {
        clock(1);
        clock(0);
    }

#ifdef WISHBONE
    void clock(bool level) { top_->wb_clk_i = level; top_->eval(); }
    void reset(bool active) { top_->wb_rst_i = active; }
#else
    void clock(bool level) { top_->aclk = level; top_->eval(); }
    void reset(bool active) { top_->aresetn = !active; }
#endif

    std::unique_ptr<Vip> top_ = std::make_unique<Vip>();
};

#ifdef WISHBONE
bool Ip::perform(Access& access) {
    top_->wb_cyc_i = top_->wb_stb_i = 1;
    top_->wb_we_i = access.write;
    top_->wb_adr_i = access.address >> 2;
    top_->wb_sel_i = 15;
    top_->wb_dat_i = access.value;
    bool done = false;
    for (int n = 0; n < LIMIT && !done; n++) {
        top_->eval();
        done = top_->wb_ack_o || top_->wb_err_o;
        access.error = top_->wb_err_o;
        if (!access.write) access.value = top_->wb_dat_o;
        cycle();
    }
    top_->wb_cyc_i = top_->wb_stb_i = 0;
    for (int n = 0; n < IDLE; n++) cycle();
    return done;
}
#else
bool Ip::perform(Access& access) {
    bool address_write = access.write, data_write = access.write, address_read = !access.write;
    top_->s_axil_awaddr = top_->s_axil_araddr = access.address;
    top_->s_axil_wdata = access.value;
    top_->s_axil_wstrb = 15;
    top_->s_axil_bready = top_->s_axil_rready = 1;
    bool done = false;
    for (int n = 0; n < LIMIT && !done; n++) {
        top_->s_axil_awvalid = address_write;
        top_->s_axil_wvalid = data_write;
        top_->s_axil_arvalid = address_read;
        top_->eval();
        done = access.write ? top_->s_axil_bvalid : top_->s_axil_rvalid;
        access.error = (access.write ? top_->s_axil_bresp : top_->s_axil_rresp) != 0;
        if (!access.write) access.value = top_->s_axil_rdata;
        // A transfer that is accepted at this clock edge is not offered again.
        address_write &= !top_->s_axil_awready;
        data_write &= !top_->s_axil_wready;
        address_read &= !top_->s_axil_arready;
        cycle();
    }
    for (int n = 0; n < IDLE; n++) cycle();
    return done;
}
#endif

bool read_all(uint8_t* to, size_t size) {
    while (size) {
        ssize_t n = read(STDIN_FILENO, to, size);
        if (n <= 0) return false;
        to += n;
        size -= n;
    }
    return true;
}

}  // namespace

int main() {
    Ip ip;
    uint8_t request[9];
    while (read_all(request, sizeof request)) {
        Access access{request[0] == 'W', 0, 0, false};
        std::memcpy(&access.address, request + 1, 4);
        std::memcpy(&access.value, request + 5, 4);
        if (!ip.perform(access)) {
            fprintf(stderr, "an access to 0x%x did not end within %d cycles\n", access.address, LIMIT);
            return 1;
        }
        uint8_t answer[5] = {access.error};
        std::memcpy(answer + 1, &access.value, 4);
        if (write(STDOUT_FILENO, answer, sizeof answer) != sizeof answer) return 1;
    }
    return 0;
}
