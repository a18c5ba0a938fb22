// The simulated network core: a Verilated NetworkTop with commands on stdin, answers on stdout.
//
// All numbers have 32 bits, little-endian. A vector has its number as address. The core has no reset:
// its registers start with the values that a reset gives them.
//
//   'W' first count, then the bytes            writes vectors
//   'R' first count                            answer: the bytes of the vectors
//   'S' and the numbers of struct Start        executes a list; answer: struct Outcome
//
// With a program memory, whose bytes have the numbers of all of the simulated AXI4 memory:
//
//   'P' first count, then the bytes            writes bytes
//   'Q' first count                            answer: the bytes
//   'M' and the numbers of struct AxiTiming    sets the timing and the errors of the memory
//
// The macros DEPTH (bytes of a vector), BANKS, BANK_BITS, VECTORS (of the memory), WRITABLE
// (vectors that the host writes: more than VECTORS in a core with resident), READ_VECTORS and
// AXI_BYTES (of the AXI4 memory, or 0) are required.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "Vnetwork.h"
#include "model.h"

#define AXI_PIN(top, name) (top)->name
#include "axi_memory.h"

namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint32_t PATIENCE = 100000;  // cycles without progress in which an access must happen

struct Start {
    uint32_t list, log;           // vectors
    uint32_t base, limit;         // words
    uint32_t cycles;              // limit of the simulation
    uint32_t abort;               // cycle of an abort after START; 0: none
    // Accesses of the host while the list runs: each cycle without one starts one with a
    // probability of rate / 256. Reads are from the first area, writes go to the second one.
    uint32_t rate, read_first, read_count, write_first, write_count, seed;
    uint32_t program_base;        // byte of the AXI4 memory
    uint32_t program_limit;       // words
    uint32_t on_chip;             // list and log lie in the memory on the chip, of two
};

struct Outcome {
    uint32_t finished;            // 0: the limit of cycles was reached
    uint32_t state, error, job, cycles, result, result_bytes;
    uint32_t simulated;           // cycles from START to the end
    uint32_t reads, writes;       // accesses of the host while the list ran
    uint32_t wrong;               // reads whose data differ from the memory's
};

[[noreturn]] void fail(const char* text) {
    fprintf(stderr, "%s\n", text);
    _exit(1);
}

void read_whole(void* to, size_t size) {
    if (!read_all(to, size)) fail("the input must end between two commands");
}

uint32_t address(uint32_t number) { return number / BANKS << BANK_BITS | number % BANKS; }

uint32_t number(uint32_t address) {
    return (address >> BANK_BITS) * BANKS + (address & ((1u << BANK_BITS) - 1));
}

// The core, its clock, and a copy of all that the host has written.
class Core {
public:
    Core() : shadow_(size_t(WRITABLE) * DEPTH) {}

    void store(uint32_t first, const Bytes& data) {
        for (uint32_t n = 0; n < data.size() / DEPTH; n++) {
            offer_write(first + n, &data[n * DEPTH]);
            for (uint32_t wait = 0; write_offered_; wait++) {
                if (wait > PATIENCE) fail("the core accepted no write");
                cycle();
            }
        }
    }

    Bytes load(uint32_t first, uint32_t count) {
        Bytes data(size_t(count) * DEPTH);
        for (uint32_t n = 0, wait = 0; n < count; wait++) {
            // The last read starts so far before the end that all its vectors exist.
            uint32_t from = std::min(first + n, uint32_t(VECTORS - READ_VECTORS));
            if (!read_offered_ && !pending_.size()) offer_read(from);
            cycle();
            if (received_) {
                uint32_t skip = first + n - from, taken = std::min(READ_VECTORS - skip, count - n);
                std::memcpy(&data[n * DEPTH], &data_[skip * DEPTH], taken * DEPTH);
                n += taken;
                wait = 0;
            }
            if (wait > PATIENCE) fail("the core answered no read");
        }
        return data;
    }

#if AXI_BYTES
    uint8_t* axi_bytes() { return bytes_.data(); }

    void set_timing(const AxiTiming& timing) { axi_.timing = timing; }
#endif

    Outcome run(const Start& start) {
        Outcome out{};
#if AXI_BYTES
        top_->program_base = start.program_base;
        top_->program_limit = start.program_limit;
        top_->begin_on_chip = start.on_chip;
#endif
        top_->base = start.base;
        top_->limit = start.limit;
        top_->begin_list = address(start.list);
        top_->begin_log = address(start.log);
        top_->begin_valid = 1;
        cycle();
        top_->begin_valid = 0;
        random_ = start.seed | 1;
        wrong_ = 0;
        checked_ = true;
        while (out.simulated < start.cycles && !out.finished) {
            out.simulated++;
            top_->list_abort = start.abort == out.simulated;
            if (start.rate) traffic(start, out);
            cycle();
            out.finished = finished_;
        }
        top_->list_abort = 0;
        for (uint32_t wait = 0; read_offered_ || write_offered_ || pending_.size(); wait++) {
            if (wait > PATIENCE) fail("the core did not complete the accesses of the host");
            cycle();
        }
        checked_ = false;
        out.wrong = wrong_;
        out.state = top_->state;
        out.error = top_->error;
        out.job = top_->job;
        out.cycles = top_->cycles;
        out.result = number(top_->result);
        out.result_bytes = top_->result_bytes;
        return out;
    }

private:
    uint32_t random() {  // xorshift
        random_ ^= random_ << 13;
        random_ ^= random_ >> 17;
        return random_ ^= random_ << 5;
    }

    void traffic(const Start& start, Outcome& out) {
        if (!read_offered_ && start.read_count >= READ_VECTORS && random() % 256 < start.rate) {
            offer_read(start.read_first + random() % (start.read_count - READ_VECTORS + 1));
            out.reads++;
        }
        if (!write_offered_ && start.write_count && random() % 256 < start.rate) {
            uint8_t vector[DEPTH];
            for (uint8_t& byte : vector) byte = random();
            offer_write(start.write_first + random() % start.write_count, vector);
            out.writes++;
        }
    }

    void offer_write(uint32_t vector, const uint8_t* data) {
        write_offered_ = true;
        top_->write_valid = 1;
        top_->write_address = address(vector);
        top_->write_enable = ~0ull >> (64 - DEPTH);
        std::memcpy(&top_->write_data, data, DEPTH);
        std::memcpy(&shadow_[size_t(vector) * DEPTH], data, DEPTH);
    }

    void offer_read(uint32_t vector) {
        read_offered_ = true;
        top_->read_valid = 1;
        top_->read_address = address(vector);
        read_vector_ = vector;
    }

    void cycle() {
#if AXI_BYTES
        axi_.serve(top_);
#endif
        top_.set_clock(false);
        bool read = read_offered_ && top_->read_ready, written = write_offered_ && top_->write_ready;
        received_ = top_->data_valid;
        finished_ = top_->finished;
        if (received_) {
            std::memcpy(data_.data(), &top_->data, data_.size());
            if (pending_.empty()) fail("the core answered a read that was not accepted");
            const uint8_t* expected = &shadow_[size_t(pending_.front()) * DEPTH];
            if (checked_) wrong_ += std::memcmp(expected, data_.data(), data_.size()) != 0;
            pending_.erase(pending_.begin());
        }
        if (read) pending_.push_back(read_vector_);
        top_.set_clock(true);
        if (read) top_->read_valid = read_offered_ = false;
        if (written) top_->write_valid = write_offered_ = false;
    }

    Model<Vnetwork> top_;
#if AXI_BYTES
    Bytes bytes_ = Bytes(AXI_BYTES);
    AxiMemory<READ_VECTORS * DEPTH> axi_{bytes_.data(), 0, AXI_BYTES};
#endif
    Bytes shadow_;
    Bytes data_ = Bytes(READ_VECTORS * DEPTH);  // of the latest read
    std::vector<uint32_t> pending_;  // first vectors of reads that were accepted
    bool read_offered_ = false, write_offered_ = false, received_ = false, finished_ = false;
    bool checked_ = false;
    uint32_t read_vector_ = 0, random_ = 1, wrong_ = 0;
};

}  // namespace

int main() {
    Core core;
    char command;
    while (read(STDIN_FILENO, &command, 1) == 1) {
        if (command == 'S') {
            Start start;
            read_whole(&start, sizeof start);
            Outcome out = core.run(start);
            write_all(&out, sizeof out);
            continue;
        }
#if AXI_BYTES
        if (command == 'M') {
            AxiTiming timing;
            read_whole(&timing, sizeof timing);
            core.set_timing(timing);
            continue;
        }
#endif
        uint32_t area[2];
        read_whole(area, sizeof area);
#if AXI_BYTES
        if (command == 'P' || command == 'Q') {
            if (uint64_t(area[0]) + area[1] > AXI_BYTES) fail("bytes must be in the AXI4 memory");
            if (command == 'P') read_whole(core.axi_bytes() + area[0], area[1]);
            else write_all(core.axi_bytes() + area[0], area[1]);
            continue;
        }
#endif
        const uint32_t vectors = command == 'W' ? WRITABLE : VECTORS;
        if (area[0] > vectors || area[1] > vectors - area[0]) fail("vectors must be in the memory");
        if (command == 'W') {
            Bytes data(size_t(area[1]) * DEPTH);
            read_whole(data.data(), data.size());
            core.store(area[0], data);
        } else if (command == 'R') {
            Bytes data = core.load(area[0], area[1]);
            write_all(data.data(), data.size());
        } else {
            fail("a command must be W, R or S");
        }
    }
}
