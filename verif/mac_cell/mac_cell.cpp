// Simulates a MAC cell alone, with blocks of steps from stdin; compiled with LATENCY, in cycles.
//
// A block is a count and that many steps, one a cycle. The answer to a block is a count and that many sums: the
// sums of all steps so far that are complete. A sum follows its step by LATENCY cycles, so the first answer is
// LATENCY sums short. The end of stdin is answered with these, after LATENCY idle cycles.

#include <cstdint>
#include <cstdio>
#include <vector>

#include "Vmac_cell.h"
#include "verilated.h"

namespace {

struct Step {
    uint16_t a, b;
    uint32_t c, pe_control;  // bits EN, CLEAR and START
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
    Vmac_cell mac_cell(&context);
    uint64_t cycle = 0;
    const auto run = [&](const std::vector<Step>& steps) {
        std::vector<uint32_t> sums;
        for (const Step& step : steps) {
            mac_cell.a = step.a;
            mac_cell.b = step.b;
            mac_cell.c = step.c;
            mac_cell.en = (step.pe_control & EN) != 0;
            mac_cell.clear = (step.pe_control & CLEAR) != 0;
            mac_cell.start = (step.pe_control & START) != 0;
            mac_cell.clk = 0;
            mac_cell.eval();
            if (cycle++ >= LATENCY) sums.push_back(mac_cell.sum);
            mac_cell.clk = 1;
            mac_cell.eval();
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
