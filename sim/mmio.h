// The registers of a simulated IP core, over stdin and stdout; a harness for each bus includes it.
//
// A request is 9 bytes: 'R' or 'W', the byte address, and the value to write. An answer is 5 bytes:
// 1 for a bus error or 0, and the value that was read. Numbers have 32 bits, the low byte first. The
// clock runs during accesses only. The harness defines the functions that are declared below.

#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "Vip.h"
#include "verilated.h"

constexpr int LIMIT = 100000;  // cycles of an access, at most
constexpr int IDLE = 4;        // cycles after each access

struct Access {
    bool write;
    uint32_t address, value;
    bool error;
};

// Sets the clock, or the reset, of the bus.
void set_clock(Vip& top, bool level);
void set_reset(Vip& top, bool active);

// One cycle of an access: drives the bus before the clock edge of cycle `n`. Returns whether the
// access ends with this edge, with `value` and `error` set.
bool drive(Vip& top, Access& access, int n);

// Drives the bus between accesses.
void release(Vip& top);

// Drives the pins that are not of the register bus, before each clock edge.
void serve(Vip& top);

inline char** arguments;  // of the command line

class Ip {
public:
    Ip() {
        set_reset(*top_, true);
        for (int n = 0; n < 4; n++) cycle();
        set_reset(*top_, false);
        cycle();
    }

    // Performs an access; false if it does not end.
    bool perform(Access& access) {
        bool done = false;
        for (int n = 0; n < LIMIT && !done; n++) {
            done = drive(*top_, access, n);
            cycle();
        }
        release(*top_);
        for (int n = 0; n < IDLE; n++) cycle();
        return done;
    }

private:
    void cycle() {
        serve(*top_);
        set_clock(*top_, true);
        top_->eval();
        set_clock(*top_, false);
        top_->eval();
    }

    std::unique_ptr<Vip> top_ = std::make_unique<Vip>();
};

int main(int, char** argv) {
    arguments = argv + 1;
    Ip ip;
    uint8_t request[9];
    while (fread(request, sizeof request, 1, stdin)) {
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
