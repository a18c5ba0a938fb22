// Gates at the end of a serial line: bytes on stdin go in at rx, those that come out at tx go to stdout.
//
// Called with the cycles of a bit, and a seed for what no cell has set. A request is a count, a limit and that many
// bytes. Once they are sent, its answer follows as soon as bytes came out, or after so many cycles without any: a
// count, the cycles since power came on, and the bytes. The end of stdin ends the run.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "Vgates.h"
#include "verilated.h"

namespace {

constexpr int RESET = 16;    // cycles that rst is high
constexpr int START = 4096;  // cycles before the first byte: a board waits for its PLL, and then some
constexpr int BITS = 10;     // of a byte: start, eight of data from the lowest on, stop

class Line {
   public:
    Line(Vgates& gates, uint32_t divisor) : gates_(gates), divisor_(divisor) {
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
        listen();
    }

    std::vector<uint8_t> take() { return std::move(heard_); }
    bool heard() const { return !heard_.empty(); }
    uint64_t cycles() const { return cycles_; }

   private:
    void step() {
        gates_.clk = 0;
        gates_.eval();
        gates_.clk = 1;
        gates_.eval();
        ++cycles_;
    }

    // Looks at each bit in its middle.
    void listen() {
        if (left_ == 0) {
            if (gates_.tx) return;
            left_ = BITS;
            timer_ = divisor_ / 2;
        }
        if (timer_-- > 0) return;
        timer_ = divisor_ - 1;
        bits_ = bits_ >> 1 | (gates_.tx ? 1u << (BITS - 1) : 0);
        if (--left_ > 0) return;
        if ((bits_ & 1) || !(bits_ >> (BITS - 1))) {
            std::fprintf(stderr, "a byte must start with 0 and end with 1, not be %03x\n", bits_);
            std::exit(1);
        }
        heard_.push_back(bits_ >> 1 & 255);
    }

    Vgates& gates_;
    const uint32_t divisor_;
    std::vector<uint8_t> heard_;
    uint64_t cycles_ = 0;
    uint32_t timer_ = 0;
    unsigned bits_ = 0;
    int left_ = 0;  // bits of the byte that is coming
};

}  // namespace

int main(int, char** arguments) {
    VerilatedContext context;
    context.randReset(2);
    context.randSeed(std::atoi(arguments[2]));
    const auto gates = std::make_unique<Vgates>(&context);
    Line line(*gates, std::atoi(arguments[1]));
    uint32_t request[2];  // bytes, limit
    while (std::fread(request, sizeof request, 1, stdin) == 1) {
        std::vector<uint8_t> bytes(request[0]);
        if (std::fread(bytes.data(), 1, bytes.size(), stdin) != bytes.size()) return 1;
        for (const uint8_t byte : bytes) line.send(byte);
        for (uint32_t n = 0; n < request[1] && !line.heard(); ++n) line.cycle();
        const auto heard = line.take();
        const uint64_t answer[2] = {heard.size(), line.cycles()};
        std::fwrite(answer, sizeof answer, 1, stdout);
        std::fwrite(heard.data(), 1, heard.size(), stdout);
        std::fflush(stdout);
    }
    return std::ferror(stdout) != 0;
}
