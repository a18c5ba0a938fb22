// A MAC leaf alone, driven by blocks of steps on stdin; compiled with LATENCY, in cycles.
//
// A block is a count and that many steps, a cycle each. Its answer is a count and that many sums: of the steps
// so far, those whose sum has come out. A sum belongs to the step LATENCY cycles before it, so the first answer
// lacks LATENCY of them. The end of stdin is answered with these, as idle cycles push them out.

#include <cstdint>
#include <cstdio>
#include <vector>

#include "Vleaf.h"
#include "verilated.h"

namespace {

struct Step {
    uint16_t a, b;
    uint32_t c, orders;  // EN, CLEAR, START
};
enum : uint32_t { EN = 1, CLEAR = 2, START = 4 };

void answer(const std::vector<uint32_t>& sums) {
    const uint32_t count = sums.size();
    std::fwrite(&count, sizeof count, 1, stdout);
    std::fwrite(sums.data(), sizeof count, count, stdout);
    std::fflush(stdout);
}

}  // namespace

int main() {
    VerilatedContext context;
    Vleaf leaf(&context);
    uint64_t cycle = 0;
    const auto run = [&](const std::vector<Step>& steps) {
        std::vector<uint32_t> sums;
        for (const Step& step : steps) {
            leaf.a = step.a;
            leaf.b = step.b;
            leaf.c = step.c;
            leaf.en = (step.orders & EN) != 0;
            leaf.clear = (step.orders & CLEAR) != 0;
            leaf.start = (step.orders & START) != 0;
            leaf.clk = 0;
            leaf.eval();
            if (cycle++ >= LATENCY) sums.push_back(leaf.sum);
            leaf.clk = 1;
            leaf.eval();
        }
        answer(sums);
    };
    uint32_t count;
    while (std::fread(&count, sizeof count, 1, stdin) == 1) {
        std::vector<Step> steps(count);
        if (std::fread(steps.data(), sizeof(Step), count, stdin) != count) return 1;
        run(steps);
    }
    run(std::vector<Step>(LATENCY));
    return std::ferror(stdout) != 0;
}
