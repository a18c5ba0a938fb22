// The simulated board: a Verilated accelerator whose serial port is connected to stdin and stdout.
//
// The clock always runs, as on a board. After a long time without a bit on the serial port it slows
// down, so that an idle board uses little processor time. Compiled with DIVISOR, the clock cycles
// per bit.
//
// The optional argument names a file that gets a line for each byte on the serial port: ">" and the
// clock cycle of its first bit for a byte to the board, "<" and the cycle after its last bit for a
// byte from it.
//
// With SDRAM_BANKS the board has an SDRAM: see sdram_chip.h.

#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <vector>

#include "Vboard.h"
#include "model.h"
#ifdef SDRAM_BANKS
#include "sdram_chip.h"
#endif

namespace {

using Bytes = std::vector<uint8_t>;

constexpr int BITS = 10;                   // per byte: start bit, eight data bits, stop bit
constexpr uint64_t POLL_CYCLES = 2048;     // cycles between two reads of stdin
constexpr uint64_t IDLE_CYCLES = 1 << 18;  // cycles without a bit until the clock slows down
constexpr size_t READ_SIZE = 4096;         // maximum bytes of one read

// Sends bytes as serial bits.
class UartTx {
public:
    void add(const uint8_t* data, size_t size) { bytes_.insert(bytes_.end(), data, data + size); }
    bool idle() const { return !remaining_ && next_ == bytes_.size(); }

    // Whether a byte began in this cycle; after level().
    bool began() const { return remaining_ == BITS * DIVISOR - 1; }

    // The level of the line in this cycle.
    bool level() {
        if (!remaining_) {
            if (next_ == bytes_.size()) return true;
            bits_ = 1u << (BITS - 1) | unsigned(bytes_[next_++]) << 1;
            if (next_ == bytes_.size()) bytes_.clear(), next_ = 0;
            remaining_ = BITS * DIVISOR;
        }
        bool bit = bits_ >> (BITS - (remaining_ + DIVISOR - 1) / DIVISOR) & 1;
        remaining_--;
        return bit;
    }

private:
    Bytes bytes_;
    size_t next_ = 0;
    unsigned bits_ = 0, remaining_ = 0;  // remaining_: cycles of the byte that is being sent
};

// Receives bytes from serial bits, each sampled in its middle.
class UartRx {
public:
    Bytes bytes;
    bool idle() const { return !timer_; }

    void sample(bool level) {
        if (!timer_) {
            if (!level) timer_ = (BITS - 1) * DIVISOR + DIVISOR / 2, bits_ = 0;
        } else if (--timer_ % DIVISOR == 0) {
            bits_ = bits_ >> 1 | unsigned(level) << 8;
            if (!timer_ && level) bytes.push_back(bits_ & 0xff);
        }
    }

private:
    unsigned timer_ = 0, bits_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    std::ofstream events;
    if (argc > 1) events.open(argv[1]);
    Model<Vboard> top;
    UartTx uart_tx;
    UartRx uart_rx;
#ifdef SDRAM_BANKS
    Sdram sdram;
#endif
    uint8_t buffer[READ_SIZE];
    uint64_t idle_cycles = 0, now = 0;
    auto cycle = [&] {
        size_t received = uart_rx.bytes.size();
        top->rx = uart_tx.level();
        if (uart_tx.began()) events << "> " << now << '\n';
        top.set_clock(false);
        uart_rx.sample(top->tx);
#ifdef SDRAM_BANKS
        // With a wrong phase of its clock, the words of the chip come too early or too late.
        bool right = top->phase >= SDRAM_FIRST_PHASE && top->phase <= SDRAM_LAST_PHASE;
        uint32_t word = sdram.edge(top) ^ (right ? 0 : 0x5a5a5a5a);
        top.set_clock(true);
        top->sdram_dq_i = word;
#else
        top.set_clock(true);
#endif
        now++;
        if (uart_rx.bytes.size() > received) events << "< " << now << '\n';
    };
    for (;;) {
        pollfd in{STDIN_FILENO, POLLIN, 0};
        if (uart_tx.idle() && poll(&in, 1, idle_cycles < IDLE_CYCLES ? 0 : 1) > 0) {
            ssize_t n = read(STDIN_FILENO, buffer, READ_SIZE);
            if (n <= 0) return 0;
            uart_tx.add(buffer, n);
        }
        for (uint64_t n = 0; n < POLL_CYCLES; n++) cycle();
        bool idle = uart_tx.idle() && uart_rx.idle() && uart_rx.bytes.empty();
        idle_cycles = idle ? idle_cycles + POLL_CYCLES : 0;
        if (!uart_rx.bytes.empty()) {
            events.flush();
            write_all(uart_rx.bytes.data(), uart_rx.bytes.size());
            uart_rx.bytes.clear();
        }
    }
}
