// A memory behind AXI4 with a latency and a bandwidth, for the simulated cores.
//
// The first beat of a burst is offered `latency` cycles after its address was accepted, or later:
// beats follow each other in order, `period` / 256 cycles apart. The response of a burst that is
// written is offered `latency` cycles after its last beat. A beat with an error has the bytes 0xFF.
// Bursts that cross 4 KiB, and a WLAST that does not match AWLEN, end the simulation.
//
// The macro AXI_PIN(top, name) is required: the pin of a model with this name of AXI4.

#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

struct AxiTiming {
    uint32_t latency, period;
    uint32_t error_first, error_bytes;  // addresses that are answered with `response`
    uint32_t response;                  // SLVERR is 2, DECERR is 3
    uint32_t silent;                    // 1: no answer
};

template <size_t BEAT>
class AxiMemory {
public:
    static constexpr uint32_t DECERR = 3;

    AxiMemory(uint8_t* data, uint64_t base, uint64_t size) : data_(data), base_(base), size_(size) {}

    AxiTiming timing = {1, 256, 0, 0, 0, 0};

    // Serves all channels in the cycle before a clock edge. The outputs of the core must not depend
    // on its inputs in the same cycle.
    template <class Top>
    void serve(Top& top) {
        now_++;
        bool beat = !timing.silent && !reads_.empty() && reads_.front().due <= now_
                    && free_ <= 256 * now_;
        AXI_PIN(top, rvalid) = beat;
        if (beat) {
            const Beat& front = reads_.front();
            uint32_t response = response_of(front.address);
            if (response)
                std::memset((void*)&AXI_PIN(top, rdata), 0xFF, BEAT);
            else
                std::memcpy((void*)&AXI_PIN(top, rdata), at(front.address), BEAT);
            AXI_PIN(top, rresp) = response;
            AXI_PIN(top, rlast) = front.last;
            if (AXI_PIN(top, rready)) {
                free_ = std::max(free_, 256 * now_) + timing.period;
                reads_.pop_front();
            }
        }
        AXI_PIN(top, arready) = 1;
        if (AXI_PIN(top, arvalid)) burst(reads_, AXI_PIN(top, araddr), AXI_PIN(top, arlen));
        serve_writes(top);
    }

private:
    struct Beat {
        uint64_t address;
        bool last;
        uint64_t due;
    };
    struct Word {
        uint8_t data[BEAT];
        bool strobes[BEAT];
        bool last;
    };
    struct Response {
        uint32_t value;
        uint64_t due;
    };

    template <class Top>
    void serve_writes(Top& top) {
        bool answer = !timing.silent && !responses_.empty() && responses_.front().due <= now_;
        AXI_PIN(top, bvalid) = answer;
        if (answer) {
            AXI_PIN(top, bresp) = responses_.front().value;
            if (AXI_PIN(top, bready)) responses_.pop_front();
        }
        AXI_PIN(top, awready) = AXI_PIN(top, wready) = 1;
        if (AXI_PIN(top, awvalid)) burst(addresses_, AXI_PIN(top, awaddr), AXI_PIN(top, awlen));
        if (AXI_PIN(top, wvalid)) {
            Word word;
            std::memcpy(word.data, (const void*)&AXI_PIN(top, wdata), BEAT);
            const uint8_t* bits = (const uint8_t*)&AXI_PIN(top, wstrb);
            for (size_t n = 0; n < BEAT; n++) word.strobes[n] = bits[n / 8] >> (n % 8) & 1;
            word.last = AXI_PIN(top, wlast);
            words_.push_back(word);
        }
        for (; !addresses_.empty() && !words_.empty(); addresses_.pop_front(), words_.pop_front())
            write(addresses_.front(), words_.front());
    }

    void write(const Beat& beat, const Word& word) {
        if (beat.last != word.last) fail("WLAST must be at the last beat of a burst, and only there");
        uint32_t response = response_of(beat.address);
        if (response) {
            response_ = response;
        } else {
            for (size_t n = 0; n < BEAT; n++)
                if (word.strobes[n]) at(beat.address)[n] = word.data[n];
        }
        if (beat.last) {
            responses_.push_back({response_, now_ + timing.latency});
            response_ = 0;
        }
    }

    void burst(std::deque<Beat>& beats, uint64_t address, uint32_t last) {
        if (address % BEAT) fail("a burst must start on a beat");
        if (address / 4096 != (address + last * BEAT) / 4096) fail("a burst must not cross 4 KiB");
        for (uint32_t n = 0; n <= last; n++)
            beats.push_back({address + n * BEAT, n == last, now_ + timing.latency});
    }

    uint8_t* at(uint64_t address) {
        uint64_t offset = address - base_;
        return address >= base_ && size_ >= BEAT && offset <= size_ - BEAT ? data_ + offset : nullptr;
    }

    uint32_t response_of(uint64_t address) {
        if (!at(address)) return DECERR;
        bool wrong = address + BEAT > timing.error_first
                     && address < uint64_t(timing.error_first) + timing.error_bytes;
        return wrong ? timing.response : 0;
    }

    [[noreturn]] static void fail(const char* text) {
        fprintf(stderr, "%s\n", text);
        _exit(1);
    }

    uint8_t* data_;
    uint64_t base_, size_;
    uint64_t now_ = 0, free_ = 0;  // cycles; the time of the next beat, in cycles / 256
    uint32_t response_ = 0;        // of the burst that is written
    std::deque<Beat> reads_, addresses_;
    std::deque<Word> words_;
    std::deque<Response> responses_;
};
