// The simulated board: a Verilated accelerator at its two pins, the bytes of its serial port on stdin and stdout.
//
// The clock runs as a board's does, whether or not there is anything to do; only after a long time without a bit on
// either wire it slows down, so that an idle board leaves the machine to others. Compiled with DIVISOR, the clock
// cycles of a bit.

#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "Vboard.h"
#include "verilated.h"

namespace {

using Bytes = std::vector<uint8_t>;

constexpr int BITS = 10;                  // of a byte on a wire: start, eight of data, stop
constexpr uint64_t PIECE = 2048;          // cycles between two looks at stdin
constexpr uint64_t QUIET = 1 << 18;       // cycles without a bit after which the clock slows down
constexpr size_t MOST = 4096;             // bytes read at once

// Bytes to a wire, one behind the other.
class Sender {
public:
    void add(const uint8_t* data, size_t size) { bytes_.insert(bytes_.end(), data, data + size); }
    bool idle() const { return !left_ && next_ == bytes_.size(); }

    // The wire in this cycle.
    bool wire() {
        if (!left_) {
            if (next_ == bytes_.size()) return true;
            bits_ = 1u << (BITS - 1) | unsigned(bytes_[next_++]) << 1;
            if (next_ == bytes_.size()) bytes_.clear(), next_ = 0;
            left_ = BITS * DIVISOR;
        }
        bool bit = bits_ >> (BITS - (left_ + DIVISOR - 1) / DIVISOR) & 1;
        left_--;
        return bit;
    }

private:
    Bytes bytes_;
    size_t next_ = 0;
    unsigned bits_ = 0, left_ = 0;
};

// Bytes from a wire, each bit looked at in its middle.
class Listener {
public:
    Bytes bytes;
    bool idle() const { return !timer_; }

    void hear(bool wire) {
        if (!timer_) {
            if (!wire) timer_ = (BITS - 1) * DIVISOR + DIVISOR / 2, bits_ = 0;
        } else if (--timer_ % DIVISOR == 0) {
            bits_ = bits_ >> 1 | unsigned(wire) << 8;
            if (!timer_ && wire) bytes.push_back(bits_ & 0xff);
        }
    }

private:
    unsigned timer_ = 0, bits_ = 0;
};

void write_all(const Bytes& bytes) {
    for (size_t done = 0; done < bytes.size();) {
        ssize_t n = write(STDOUT_FILENO, bytes.data() + done, bytes.size() - done);
        if (n <= 0) _exit(1);  // nobody listens any more
        done += n;
    }
}

}  // namespace

int main() {
    auto top = std::make_unique<Vboard>();
    Sender sender;
    Listener listener;
    uint8_t buffer[MOST];
    uint64_t quiet = 0;
    auto cycle = [&] {
        top->rx = sender.wire();
        top->clk = 0;
        top->eval();
        listener.hear(top->tx);
        top->clk = 1;
        top->eval();
    };
    top->rst = 1;
    cycle();
    cycle();
    top->rst = 0;
    for (;;) {
        pollfd in{STDIN_FILENO, POLLIN, 0};
        if (sender.idle() && poll(&in, 1, quiet < QUIET ? 0 : 1) > 0) {
            ssize_t n = read(STDIN_FILENO, buffer, MOST);
            if (n <= 0) return 0;
            sender.add(buffer, n);
        }
        for (uint64_t n = 0; n < PIECE; n++) cycle();
        quiet = sender.idle() && listener.idle() && listener.bytes.empty() ? quiet + PIECE : 0;
        if (!listener.bytes.empty()) {
            write_all(listener.bytes);
            listener.bytes.clear();
        }
    }
}
