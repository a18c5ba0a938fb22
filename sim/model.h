// A Verilated model with its clock and its waveform, and whole reads and writes of a pipe.

#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "verilated.h"
#ifdef TRACED
#include "verilated_vcd_c.h"
#endif

// The model `Top`, whose clock is `clk`.
template <class Top>
class Model {
public:
    // `vcd` is a file for a waveform, or null. A model without tracing writes none.
    explicit Model(const char* vcd = nullptr) {
#ifdef TRACED
        if (vcd) {
            Verilated::traceEverOn(true);
            trace_ = std::make_unique<VerilatedVcdC>();
            top_->trace(trace_.get(), 99);
            trace_->open(vcd);
        }
#else
        (void)vcd;
#endif
    }

    ~Model() {
#ifdef TRACED
        if (trace_) trace_->close();
#endif
        top_->final();
    }

    Top* operator->() { return top_.get(); }

    void set_clock(bool level) {
        top_->clk = level;
        top_->eval();
#ifdef TRACED
        if (trace_) trace_->dump(time_++);
#endif
    }

private:
    std::unique_ptr<Top> top_ = std::make_unique<Top>();
#ifdef TRACED
    std::unique_ptr<VerilatedVcdC> trace_;
    uint64_t time_ = 0;
#endif
};

// False if the input ends before.
inline bool read_all(void* to, size_t size) {
    uint8_t* data = static_cast<uint8_t*>(to);
    while (size) {
        ssize_t n = read(STDIN_FILENO, data, size);
        if (n <= 0) return false;
        data += n;
        size -= n;
    }
    return true;
}

// Ends the process if the host has closed the pipe.
inline void write_all(const void* from, size_t size) {
    const uint8_t* data = static_cast<const uint8_t*>(from);
    while (size) {
        ssize_t n = write(STDOUT_FILENO, data, size);
        if (n <= 0) _exit(1);
        data += n;
        size -= n;
    }
}
