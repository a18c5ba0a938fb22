// Gate-level simulation with a serial line: bytes from stdin are sent to rx, bytes from tx are written to stdout.
//
// Arguments: clock cycles per bit, and the seed of undefined values at power-on. A request on stdin is a count, a
// limit, and count bytes. After these are sent, the answer follows as soon as bytes have been received, or after limit
// cycles without a byte: a count, the cycles since power-on, and the bytes. The end of stdin ends the simulation.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "Vgates.h"
#include "verilated.h"

namespace {

constexpr int RESET = 16;    // cycles with rst high
constexpr int START = 4096;  // cycles before the first byte: a board waits for its PLL and its start-up delay
constexpr int BITS = 10;     // per byte: start bit, eight data bits from the lowest on, stop bit

class SerialLine {
   public:
    SerialLine(Vgates& gates, uint32_t divisor) : gates_(gates), divisor_(divisor) {
        gates_.rx = 1;
        for (int n = 0; n < START; ++n) {
            gates_.rst = n < RESET;
            step();
        }
    }

    void send(uint8_t byte) {
        const unsigned frame = 1u << (BITS - 1) | byte << 1;
        for (int n = 0; n < BITS; ++n) {
            gates_.rx = frame >> n & 1;
            for (uint32_t k = 0; k < divisor_; ++k) cycle();
        }
    }

    void cycle() {
        step();
        sample();
    }

    std::vector<uint8_t> take() { return std::move(received_); }
    bool received() const { return !received_.empty(); }
    uint64_t cycles() const { return cycles_; }

   private:
    void step() {
        gates_.clk = 0;
        gates_.eval();
        gates_.clk = 1;
        gates_.eval();
        ++cycles_;
    }

    // Samples tx in the middle of each bit.
    void sample() {
        if (remaining_ == 0) {
            if (gates_.tx) return;
            remaining_ = BITS;
            timer_ = divisor_ / 2;
        }
        if (timer_-- > 0) return;
        timer_ = divisor_ - 1;
        bits_ = bits_ >> 1 | (gates_.tx ? 1u << (BITS - 1) : 0);
        if (--remaining_ > 0) return;
        if ((bits_ & 1) || !(bits_ >> (BITS - 1))) {
            std::fprintf(stderr, "framing error: a byte must start with 0 and end with 1, not %03x\n", bits_);
            std::exit(1);
        }
        received_.push_back(bits_ >> 1 & 255);
    }

    Vgates& gates_;
    const uint32_t divisor_;
    std::vector<uint8_t> received_;
    uint64_t cycles_ = 0;
    uint32_t timer_ = 0;
    unsigned bits_ = 0;
    int remaining_ = 0;  // bits of the byte that is being received
};

}  // namespace

int main(int, char** arguments) {
    VerilatedContext context;
    context.randReset(2);
    context.randSeed(std::atoi(arguments[2]));
    const auto gates = std::make_unique<Vgates>(&context);
    SerialLine line(*gates, std::atoi(arguments[1]));
    uint32_t request[2];  // bytes, limit
    while (std::fread(request, sizeof request, 1, stdin) == 1) {
        std::vector<uint8_t> bytes(request[0]);
        if (std::fread(bytes.data(), 1, bytes.size(), stdin) != bytes.size()) return 1;
        for (const uint8_t byte : bytes) line.send(byte);
        for (uint32_t n = 0; n < request[1] && !line.received(); ++n) line.cycle();
        const auto received = line.take();
        const uint64_t answer[2] = {received.size(), line.cycles()};
        std::fwrite(answer, sizeof answer, 1, stdout);
        std::fwrite(received.data(), 1, received.size(), stdout);
        std::fflush(stdout);
    }
    return std::ferror(stdout) != 0;
}
