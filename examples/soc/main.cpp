// Clocks the SoC until its firmware ends the simulation, at most 1,000,000,000 cycles.
#include "Vsoc.h"
#include <cstdio>

int main() {
    VerilatedContext context;
    Vsoc soc{&context};
    for (uint64_t cycle = 0; !context.gotFinish(); cycle++) {
        if (cycle == 1'000'000'000) {
            std::puts("the firmware has not ended after 1,000,000,000 cycles");
            return 1;
        }
        soc.resetn = cycle > 20;
        soc.clk = 0;
        soc.eval();
        soc.clk = 1;
        soc.eval();
    }
    return 0;
}
