// Clocks the SoC until its firmware ends the simulation, and prints what its UART sends.
//
// The argument is the limit in clock cycles. Exit code 1: the limit was reached.
#include "Vsim.h"
#include "verilated.h"
#include <cstdio>
#include <cstdlib>

int main(int count, char **arguments) {
    const uint64_t limit = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 100'000'000;
    VerilatedContext context;
    Vsim soc{&context};
    soc.serial_source_ready = 1;
    soc.serial_sink_valid = 0;
    for (uint64_t cycle = 0; !context.gotFinish(); cycle++) {
        if (cycle == limit) {
            std::printf("\nThe firmware has not ended after %llu cycles.\n",
                        static_cast<unsigned long long>(limit));
            return 1;
        }
        soc.sys_clk = 0;
        soc.eval();
        if (soc.serial_source_valid) {
            std::putchar(soc.serial_source_data);
            if (soc.serial_source_data == '\n')
                std::fflush(stdout);
        }
        soc.sys_clk = 1;
        soc.eval();
    }
    return 0;
}
