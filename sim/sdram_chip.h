// The SDRAM chip of a simulated core.
//
// The macros of SDRAM_ are required: its size, and its times in picoseconds, as
// `weft.sdram.SdramChip` has them. Like `verif.sdram_chip.SdramChipModel`, it refuses what the data
// sheet does not allow: that ends the simulation with a message. Words that were never written have
// any values.

#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

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
        unsigned dqm = SDRAM_MASKS ? top->sdram_dqm : 0;
        transfer(top->sdram_dq_oe, top->sdram_dq_o, dqm);
        age();
        masks_ = {masks_[1], dqm};
        now_ += SDRAM_PERIOD, cycle_++;
        return word_read();
    }

    // All bytes, in the order of the addresses of the controller: row, bank, column.
    std::vector<uint8_t>& bytes() { return memory_; }

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
    static constexpr unsigned A10 = 1 << 10, SINGLE_WRITES = 1 << 9;
    static constexpr unsigned SLOTS = 32;  // words under way

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
                write_length_ = a_ & SINGLE_WRITES ? 1 : length_;
                check(!bank_ && !(a_ >> 7 & ~(SINGLE_WRITES >> 7)), "an unknown mode");
                check(!(a_ & 8) && length_ <= 8, "bursts must be sequential, of at most 8 words");
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
        bool read = command_ == READ;
        unsigned length = read ? length_ : write_length_;
        check(a_ < SDRAM_COLUMNS && a_ % length == 0, "READ or WRITE of such a column");
        check(now_ - bank.activated >= SDRAM_RCD, "READ or WRITE comes too early (tRCD)");
        check(cycle_ >= busy_, "READ or WRITE cuts the access before it");
        busy_ = cycle_ + length;
        uint64_t place = (uint64_t(bank.row) * SDRAM_BANKS + bank_) * SDRAM_COLUMNS + a_;
        for (unsigned n = 0; n < length; n++) {
            int64_t when = cycle_ + n + (read ? latency_ : 0);
            (read ? reads_ : writes_)[when % SLOTS] = {when, place + n};
        }
        if (read)
            bank.read_end = busy_;
        else
            bank.written = now_ + (length - 1) * SDRAM_PERIOD;
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
    unsigned bank_ = 0, a_ = 0, length_ = 0, write_length_ = 0, latency_ = 0;
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
