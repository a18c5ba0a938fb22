// The simulated accelerator: a Verilated core with the byte link of docs/interfaces.md on stdin and
// stdout.
//
// The core has no reset: its registers start with the values that a reset gives them.
//
// The clock runs while command words are queued or the core is busy. Within a COMMANDS frame a
// command word is valid in every cycle, and results are always taken: cycles do not depend on the
// speed of the host. The macros BYTES_IN, BYTES_OUT and REGISTER_LATENCY are required.
//
//   model [--activity FILE] [--vcd FILE]
//
// --activity writes the core's activity, one byte a cycle; --vcd writes a waveform.

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "Vweft.h"
#include "model.h"

namespace {

using Bytes = std::vector<uint8_t>;

enum Type : uint8_t {
    COMMANDS = 1, READ = 2, ABORT = 3,
    RESULTS = 0x81, REGISTERS = 0x82, ABORTED = 0x83, ERROR = 0xff
};
constexpr size_t RESULT_FRAME = 1 << 16;   // results of a job are sent in frames of about this size
constexpr unsigned POLL_CYCLES = 1024;     // cycles between two checks for new frames
constexpr uint8_t BUSY = 1 << 5;           // bit of the core's activity

uint32_t crc32(const uint8_t* data, size_t size, uint32_t crc = 0) {
    static const auto table = [] {
        std::array<uint32_t, 256> t{};
        for (uint32_t n = 0; n < 256; n++) {
            uint32_t c = n;
            for (int bit = 0; bit < 8; bit++) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
            t[n] = c;
        }
        return t;
    }();
    crc = ~crc;
    while (size--) crc = table[(crc ^ *data++) & 0xff] ^ (crc >> 8);
    return ~crc;
}

void put(Bytes& out, uint64_t value, int bytes) {
    for (int n = 0; n < bytes; n++) out.push_back(value >> (8 * n));
}

uint32_t get(const uint8_t* data, int bytes) {
    uint32_t value = 0;
    for (int n = 0; n < bytes; n++) value |= uint32_t(data[n]) << (8 * n);
    return value;
}

// The link to the host.
class Link {
public:
    struct Frame { uint8_t type, sequence; Bytes payload; };

    // Waits for the next frame; false at the end of the input.
    bool receive(Frame& frame) {
        uint8_t head[6];
        for (;;) {
            uint8_t byte;
            if (!read_all(&byte, 1)) return false;
            while (byte == 'W') {
                if (!read_all(&byte, 1)) return false;
                if (byte == 'F') goto found;
            }
            continue;
        found:
            if (!read_all(head, 6)) return false;
            frame.type = head[0];
            frame.sequence = head[1];
            frame.payload.resize(get(head + 2, 4));
            uint8_t tail[4];
            if (!read_all(frame.payload.data(), frame.payload.size())) return false;
            if (!read_all(tail, 4)) return false;
            uint32_t crc = crc32(frame.payload.data(), frame.payload.size(), crc32(head, 6));
            if (crc == get(tail, 4)) return true;
            error(frame.sequence, "CRC of a frame must fit its bytes");
        }
    }

    bool has_input() const {
        pollfd in{STDIN_FILENO, POLLIN, 0};
        return poll(&in, 1, 0) > 0;
    }

    void send(uint8_t type, uint8_t sequence, const Bytes& payload) {
        Bytes frame;
        put(frame, type, 1);
        put(frame, sequence, 1);
        put(frame, payload.size(), 4);
        frame.insert(frame.end(), payload.begin(), payload.end());
        put(frame, crc32(frame.data(), frame.size()), 4);
        frame.insert(frame.begin(), {'W', 'F'});
        write_all(frame.data(), frame.size());
    }

    void error(uint8_t sequence, const std::string& text) {
        send(ERROR, sequence, Bytes(text.begin(), text.end()));
    }
};

// The core and its clock.
class Core {
public:
    Core(Link& link, const char* activity, const char* vcd) : link_(link), top_(vcd) {
        if (activity && !(activity_ = fopen(activity, "wb"))) {
            perror(activity);
            _exit(1);
        }
    }

    ~Core() {
        if (activity_) fclose(activity_);
    }

    void feed(Bytes&& words) {
        if (taken_ == queue_.size()) queue_.swap(words), taken_ = 0;
        else queue_.insert(queue_.end(), words.begin(), words.end());
    }

    bool busy() const { return taken_ < queue_.size() || busy_; }

    void cycle() {
        bool valid = taken_ < queue_.size();
        top_->cmd_valid = valid;
        if (valid) std::memcpy(&top_->cmd_data, &queue_[taken_], BYTES_IN);
        top_->res_ready = 1;
        top_.set_clock(false);
        if (valid && top_->cmd_ready) taken_ += BYTES_IN;
        if (top_->res_valid) take_result();
        busy_ = top_->activity & BUSY;
        if (activity_) fputc(top_->activity, activity_);
        top_.set_clock(true);
    }

    void abort() {
        top_->cmd_abort = 1;
        cycle();
        top_->cmd_abort = 0;
    }

    uint32_t reg(unsigned address) {
        top_->reg_address = address;
        for (int n = 0; n < REGISTER_LATENCY; n++) cycle();
        return top_->reg_data;
    }

private:
    void take_result() {
        if (results_.empty()) {
            put(results_, top_->res_tag, 2);
            put(results_, 0, 2);
        }
        const uint8_t* data = reinterpret_cast<const uint8_t*>(&top_->res_data);
        results_.insert(results_.end(), data, data + BYTES_OUT);
        if (top_->res_last || results_.size() >= RESULT_FRAME) {
            results_[2] = top_->res_last;
            results_[3] = top_->res_last ? top_->res_status : 0;
            link_.send(RESULTS, sequence_++, results_);
            results_.clear();
        }
    }

    Link& link_;
    Model<Vweft> top_;
    Bytes queue_, results_;
    size_t taken_ = 0;
    bool busy_ = false;
    uint8_t sequence_ = 0;
    FILE* activity_ = nullptr;
};

void serve(Link& link, Core& core, Link::Frame& frame) {
    const Bytes& payload = frame.payload;
    switch (frame.type) {
    case COMMANDS:
        if (payload.size() % BYTES_IN) {
            link.error(frame.sequence, "COMMANDS must be whole words of the command stream");
        } else {
            core.feed(std::move(frame.payload));
        }
        return;
    case READ: {
        if (payload.size() != 4) return link.error(frame.sequence, "READ must have 4 bytes");
        Bytes words;
        uint32_t address = get(payload.data(), 2), count = get(payload.data() + 2, 2);
        for (uint32_t n = 0; n < count; n++) put(words, core.reg(address + n), 4);
        return link.send(REGISTERS, frame.sequence, words);
    }
    case ABORT:
        core.abort();
        return link.send(ABORTED, frame.sequence, {});
    default:
        link.error(frame.sequence, "type of a frame must be COMMANDS, READ or ABORT");
    }
}

}  // namespace

int main(int argc, char** argv) {
    const char* activity = nullptr;
    const char* vcd = nullptr;
    for (int n = 1; n + 1 < argc; n += 2) {
        if (!strcmp(argv[n], "--activity")) activity = argv[n + 1];
        if (!strcmp(argv[n], "--vcd")) vcd = argv[n + 1];
    }
    Link link;
    Core core(link, activity, vcd);
    Link::Frame frame;
    for (unsigned count = 0;; count++) {
        if (!core.busy() || (count % POLL_CYCLES == 0 && link.has_input())) {
            if (!link.receive(frame)) return 0;
            serve(link, core, frame);
        } else {
            core.cycle();
        }
    }
}
