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
// With SDRAM_BANKS the board has an SDRAM. Then the other macros of SDRAM_ are required: its size,
// and its times in picoseconds, as `weft.sdram.SdramChip` has them. Like
// `verif.sdram_chip.SdramChipModel`, it refuses what the data sheet does not allow: that ends the
// simulation with a message. Words that were never written have any values.

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "Vboard.h"
#include "model.h"

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

#ifdef SDRAM_BANKS

// The chip at the other end of the pins; `edge` is a clock edge.
class Sdram {
public:
    // The edge at the end of a cycle with these pins; returns the word at the pins in the next one.
    template <class Top>
    uint32_t edge(Top& top) {
        if (!top->sdram_cke || top->sdram_cs_n) refuse("CKE must be high, and CS# low");
        command_ = Command(top->sdram_ras_n << 2 | top->sdram_cas_n << 1 | top->sdram_we_n);
        bank_ = top->sdram_ba, a_ = top->sdram_a;
        if (command_ != NOP) {
            check(now_ >= SDRAM_POWER_UP, "a command comes before the end of power-up");
            check(now_ >= free_, "a command comes too early (tRFC, tMRD)");
            check(closed_ || command_ == PRECHARGE, "the first command must be PRECHARGE of all");
            check(length_ || command_ < ACTIVATE, "the mode must be set before an access");
            check(bank_ < SDRAM_BANKS, "there is no such bank");
            execute();
        }
        transfer(top->sdram_dq_oe, top->sdram_dq_o, top->sdram_dqm);
        age();
        masks_ = {masks_[1], unsigned(top->sdram_dqm)};
        now_ += SDRAM_PERIOD, cycle_++;
        return word_read();
    }

private:
    enum Command { MODE, REFRESH, PRECHARGE, ACTIVATE, WRITE, READ, STOP, NOP };
    struct Bank {
        bool open = false;
        unsigned row = 0;
        int64_t activated = NEVER, precharged = NEVER, written = NEVER;  // ps
        int64_t read_end = 0;  // cycle in which a PRECHARGE cuts no word any more
    };
    struct Word {
        int64_t cycle = -1;
        uint64_t place = 0;
    };
    static constexpr int64_t NEVER = -1'000'000'000'000;
    static constexpr unsigned A10 = 1 << 10, SLOTS = 32;  // words under way

    void refuse(const char* rule) const {
        std::fprintf(stderr, "SDRAM, cycle %lld: %s\n", (long long)cycle_, rule);
        std::exit(3);
    }
    void check(bool right, const char* rule) const {
        if (!right) refuse(rule);
    }

    void execute() {
        Bank& bank = banks_[bank_];
        switch (command_) {
            case ACTIVATE:
                check(!bank.open, "ACTIVATE of a bank with an open row");
                check(a_ < SDRAM_ROWS, "there is no such row");
                check(now_ - bank.precharged >= SDRAM_RP, "ACTIVATE comes too early (tRP)");
                check(now_ - bank.activated >= SDRAM_RC, "ACTIVATE comes too early (tRC)");
                check(now_ - activated_ >= SDRAM_RRD, "ACTIVATE comes too early (tRRD)");
                bank.open = true, bank.row = a_, bank.activated = activated_ = now_;
                break;
            case PRECHARGE:
                for (unsigned n = 0; n < SDRAM_BANKS; n++)
                    if (n == bank_ || a_ & A10) precharge(banks_[n]);
                closed_ |= (a_ & A10) != 0;
                break;
            case REFRESH:
                for (const Bank& each : banks_) {
                    check(!each.open, "REFRESH while a row is open");
                    check(now_ - each.precharged >= SDRAM_RP, "REFRESH comes too early (tRP)");
                }
                free_ = now_ + SDRAM_RFC;
                refreshed_[refreshes_++ % SDRAM_REFRESHES] = now_;
                break;
            case MODE:
                for (const Bank& each : banks_) check(!each.open, "the mode while a row is open");
                check(refreshes_ >= 8, "the mode must follow 8 refreshes");
                length_ = 1 << (a_ & 7), latency_ = a_ >> 4 & 7;
                check(!bank_ && !(a_ >> 7) && !(a_ & 8) && length_ <= 8, "an unknown mode");
                check(latency_ == 2 || latency_ == 3, "an unknown CAS latency");
                check(latency_ == 3 || SDRAM_PERIOD >= SDRAM_PERIOD_2, "CAS latency 2 is too short");
                free_ = now_ + 2 * SDRAM_PERIOD;
                break;
            case READ:
            case WRITE:
                access(bank);
                break;
            default:
                refuse("BURST STOP must not come");
        }
    }

    void precharge(Bank& bank) {
        if (!bank.open) return;
        check(now_ - bank.activated >= SDRAM_RAS, "PRECHARGE comes too early (tRAS)");
        check(now_ - bank.written >= SDRAM_WR, "PRECHARGE comes too early (tWR)");
        check(cycle_ >= bank.read_end, "PRECHARGE cuts a READ");
        bank.open = false, bank.precharged = now_;
    }

    void access(Bank& bank) {
        check(bank.open, "READ or WRITE of a bank without an open row");
        check(a_ < SDRAM_COLUMNS && a_ % length_ == 0, "READ or WRITE of such a column");
        check(now_ - bank.activated >= SDRAM_RCD, "READ or WRITE comes too early (tRCD)");
        check(cycle_ >= busy_, "READ or WRITE cuts the access before it");
        busy_ = cycle_ + length_;
        uint64_t place = (uint64_t(bank.row) * SDRAM_BANKS + bank_) * SDRAM_COLUMNS + a_;
        bool read = command_ == READ;
        for (unsigned n = 0; n < length_; n++) {
            int64_t when = cycle_ + n + (read ? latency_ : 0);
            (read ? reads_ : writes_)[when % SLOTS] = {when, place + n};
        }
        if (read)
            bank.read_end = busy_;
        else
            bank.written = now_ + (length_ - 1) * SDRAM_PERIOD;
    }

    void transfer(bool driven, uint32_t word, unsigned dqm) {
        auto reads = [&](int64_t cycle) {
            return cycle >= 0 && reads_[cycle % SLOTS].cycle == cycle;
        };
        check(!driven || !(reads(cycle_) || reads(cycle_ - 1)), "two drivers of the data pins");
        const Word& slot = writes_[cycle_ % SLOTS];
        if (slot.cycle != cycle_) return;
        check(driven, "nothing drives a word that is written");
        for (unsigned n = 0; n < BYTES; n++)
            if (!(dqm >> n & 1)) memory_[BYTES * slot.place + n] = word >> 8 * n;
    }

    uint32_t word_read() const {
        const Word& slot = reads_[cycle_ % SLOTS];
        if (slot.cycle != cycle_) return 0;
        check(!masks_[0], "DQM masks a word that is read");
        uint32_t word = 0;
        for (unsigned n = 0; n < BYTES; n++)
            word |= uint32_t(memory_[BYTES * slot.place + n]) << 8 * n;
        return word;
    }

    void age() const {
        for (const Bank& bank : banks_)
            check(!bank.open || now_ - bank.activated <= SDRAM_RAS_MAX, "a row is open too long");
        if (length_ && refreshes_ >= SDRAM_REFRESHES)
            check(now_ - refreshed_[refreshes_ % SDRAM_REFRESHES] <= SDRAM_RETENTION,
                  "a row was not refreshed in time");
    }

    static constexpr unsigned BYTES = SDRAM_WIDTH / 8;
    std::vector<uint8_t> memory_ = noise();
    std::array<Bank, SDRAM_BANKS> banks_;
    std::array<Word, SLOTS> reads_, writes_;
    std::vector<int64_t> refreshed_ = std::vector<int64_t>(SDRAM_REFRESHES);
    std::array<unsigned, 2> masks_{};
    Command command_ = NOP;
    unsigned bank_ = 0, a_ = 0, length_ = 0, latency_ = 0;
    uint64_t refreshes_ = 0;
    bool closed_ = false;
    int64_t now_ = 0, cycle_ = 0, free_ = 0, busy_ = 0, activated_ = NEVER;

    static std::vector<uint8_t> noise() {
        std::vector<uint8_t> bytes(size_t(SDRAM_BANKS) * SDRAM_ROWS * SDRAM_COLUMNS * BYTES);
        uint32_t state = 1;
        for (uint8_t& byte : bytes) byte = (state = 1664525 * state + 1013904223) >> 24;
        return bytes;
    }
};

#endif

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
        uint32_t word = sdram.edge(top);
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
