// The simulated language core: a Verilated LanguageCore with commands on stdin, answers on stdout.
//
// All numbers have 32 bits, little-endian.
//
//   'W' table first count, then count * 8 bytes   writes parameter groups, or entries of a table
//   'R' first count                               answer: count * 8 bytes, of parameter groups
//   'S' and the numbers of struct Start, then the prompt, a number a token
//                                                 answer: struct Outcome; then for each position
//                                                 its cycles, and for each emitted token a number
//
//   'P' byte size, then the bytes                 writes the program memory
//   'Q' byte size                                 answer: the bytes of the program memory
//
// The macro READ_LATENCY (cycles from a group to its data) is required. With SDRAM_BANKS the program
// memory is an SDRAM: see sdram_chip.h. Its contents are written and read at once, in no cycle.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "Vlanguage.h"
#include "model.h"
#ifdef SDRAM_BANKS
#include "sdram_chip.h"
#endif

namespace {

struct Start {
    uint32_t list, first_position, limit, stop_token, seed, prompt;
    uint32_t cycles;     // limit of the simulation
    uint32_t abort;      // cycle of an abort after the start; 0: none
    uint32_t stall;      // cycles in which each token waits for the host
};

struct Outcome {
    uint32_t finished, error, position, simulated, positions, tokens;
};

[[noreturn]] void fail(const char* text) {
    fprintf(stderr, "%s\n", text);
    _exit(1);
}

void read_whole(void* to, size_t size) {
    if (!read_all(to, size)) fail("the input must end between two commands");
}

class Core {
public:
#ifdef SDRAM_BANKS
    Core() {  // the controller sets the chip up, and refreshes it
        for (uint64_t n = 0; n < SDRAM_POWER_UP / SDRAM_PERIOD * 9 / 8 + 1000; n++) cycle();
    }

    // A part of the program memory.
    uint8_t* bytes(uint64_t first, uint64_t size) {
        if (first + size > chip_.bytes().size()) fail("the program memory must have these bytes");
        return chip_.bytes().data() + first;
    }
#endif

    void store(uint32_t table, uint32_t group, uint64_t data) {
        top_->table = table;
        top_->group = group;
        top_->write_data = data;
        top_->write = 1;
        cycle();
        top_->write = 0;
    }

    uint64_t load(uint32_t group) {
        top_->group = group;
        for (uint32_t n = 0; n <= READ_LATENCY; n++) cycle();
        return top_->read_data;
    }

    Outcome run(const Start& start, const std::vector<uint32_t>& prompt,
                std::vector<uint32_t>& cycles, std::vector<uint32_t>& tokens) {
        Outcome out{};
        top_->list = start.list;
        top_->first_position = start.first_position;
        top_->limit = start.limit;
        top_->stop_token = start.stop_token;
        top_->seed = start.seed;
        top_->start = 1;
        cycle();
        top_->start = 0;
        size_t next = 0;
        uint32_t position = top_->position, waited = 0;
        while (out.simulated < start.cycles && !out.finished) {
            out.simulated++;
            top_->run_abort = start.abort == out.simulated;
            top_->prompt_valid = next < prompt.size();
            if (next < prompt.size()) {
                top_->prompt_token = prompt[next];
                top_->prompt_last = next + 1 == prompt.size();
            }
            top_.set_clock(false);
            bool emitted = top_->token_valid;
            top_->token_ready = emitted && waited >= start.stall;
            waited = emitted && waited < start.stall ? waited + 1 : 0;
            top_.set_clock(false);
            bool taken = top_->prompt_valid && top_->prompt_ready;
            if (top_->token_valid && top_->token_ready) tokens.push_back(top_->token);
            rise();
            next += taken;
            if (top_->position != position) {
                position = top_->position;
                cycles.push_back(top_->cycles);
            }
            out.finished = !top_->busy;
        }
        top_->prompt_valid = top_->token_ready = top_->run_abort = 0;
        out.error = top_->error;
        out.position = top_->position;
        out.positions = cycles.size();
        out.tokens = tokens.size();
        return out;
    }

private:
    void cycle() {
        top_.set_clock(false);
        rise();
    }

    void rise() {
#ifdef SDRAM_BANKS
        uint32_t word = chip_.edge(top_);
        top_.set_clock(true);
        top_->sdram_dq_i = word;
#else
        top_.set_clock(true);
#endif
    }

    Model<Vlanguage> top_;
#ifdef SDRAM_BANKS
    Sdram chip_;
#endif
};

}  // namespace

int main() {
    Core core;
    char command;
    while (read(STDIN_FILENO, &command, 1) == 1) {
        if (command == 'W') {
            uint32_t area[3];
            read_whole(area, sizeof area);
            std::vector<uint64_t> data(area[2]);
            read_whole(data.data(), 8 * data.size());
            for (uint32_t n = 0; n < area[2]; n++) core.store(area[0], area[1] + n, data[n]);
        } else if (command == 'S') {
            Start start;
            read_whole(&start, sizeof start);
            std::vector<uint32_t> prompt(start.prompt), cycles, tokens;
            read_whole(prompt.data(), 4 * prompt.size());
            Outcome out = core.run(start, prompt, cycles, tokens);
            write_all(&out, sizeof out);
            write_all(cycles.data(), 4 * cycles.size());
            write_all(tokens.data(), 4 * tokens.size());
        } else if (command == 'R') {
            uint32_t area[2];
            read_whole(area, sizeof area);
            for (uint32_t n = 0; n < area[1]; n++) {
                uint64_t data = core.load(area[0] + n);
                write_all(&data, sizeof data);
            }
#ifdef SDRAM_BANKS
        } else if (command == 'P' || command == 'Q') {
            uint32_t area[2];
            read_whole(area, sizeof area);
            uint8_t* bytes = core.bytes(area[0], area[1]);
            if (command == 'P') read_whole(bytes, area[1]);
            else write_all(bytes, area[1]);
#endif
        } else {
            fail("a command must be W, R, S, P or Q");
        }
    }
}
