// An IP core with AXI4-Lite, and an AXI4 master with a memory: a file that is shared.
//
// The arguments are the file and the address of its first byte. Addresses outside the memory are
// answered with SLVERR. A burst is answered from the next cycle on; no channel pauses.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdlib>
#include <deque>
#include <utility>

#include "mmio_axi_lite.h"

namespace {

constexpr int SLVERR = 2;
constexpr size_t BEAT = sizeof(std::declval<Vip>().m_axi_rdata);  // bytes

struct Beat {
    uint32_t address;
    bool last;
    uint8_t data[BEAT];
    uint64_t strobes;  // a bit for each byte
};

class Memory {
public:
    Memory(const char* path, uint32_t base) : base_(base) {
        int file = open(path, O_RDWR);
        struct stat status;
        if (file < 0 || fstat(file, &status)) fail(path);
        size_ = status.st_size;
        void* map = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (map == MAP_FAILED) fail(path);
        data_ = static_cast<uint8_t*>(map);
    }

    // The beat at an address; nullptr outside the memory.
    uint8_t* at(uint32_t address) {
        uint32_t offset = address - base_;
        return size_ >= BEAT && offset <= size_ - BEAT ? data_ + offset : nullptr;
    }

private:
    static void fail(const char* path) {
        perror(path);
        exit(1);
    }

    uint32_t base_;
    size_t size_;
    uint8_t* data_;
};

std::deque<Beat> reads;      // to answer
std::deque<Beat> addresses;  // of beats to write
std::deque<Beat> writes;     // beats without their addresses
std::deque<int> responses;   // of written bursts

void add_burst(std::deque<Beat>& beats, uint32_t address, int last) {
    for (int n = 0; n <= last; n++) beats.push_back({uint32_t(address + n * BEAT), n == last, {}, 0});
}

void serve_reads(Vip& top, Memory& memory) {
    top.m_axi_rvalid = !reads.empty();
    if (!reads.empty()) {
        Beat beat = reads.front();
        uint8_t* data = memory.at(beat.address);
        if (data) std::memcpy((void*)&top.m_axi_rdata, data, BEAT);
        top.m_axi_rresp = data ? 0 : SLVERR;
        top.m_axi_rlast = beat.last;
        if (top.m_axi_rready) reads.pop_front();
    }
    top.m_axi_arready = 1;
    if (top.m_axi_arvalid) add_burst(reads, top.m_axi_araddr, top.m_axi_arlen);
}

void serve_writes(Vip& top, Memory& memory) {
    static int response = 0;  // of the burst that is written
    top.m_axi_bvalid = !responses.empty();
    if (!responses.empty()) {
        top.m_axi_bresp = responses.front();
        if (top.m_axi_bready) responses.pop_front();
    }
    top.m_axi_awready = top.m_axi_wready = 1;
    if (top.m_axi_awvalid) add_burst(addresses, top.m_axi_awaddr, top.m_axi_awlen);
    if (top.m_axi_wvalid) {
        Beat beat{0, bool(top.m_axi_wlast), {}, uint64_t(top.m_axi_wstrb)};
        std::memcpy(beat.data, (const void*)&top.m_axi_wdata, BEAT);
        writes.push_back(beat);
    }
    for (; !addresses.empty() && !writes.empty(); addresses.pop_front(), writes.pop_front()) {
        Beat beat = writes.front();
        if (beat.last != addresses.front().last) {
            fprintf(stderr, "WLAST must be at the last beat of a burst, and only there\n");
            exit(1);
        }
        uint8_t* data = memory.at(addresses.front().address);
        if (!data) response = SLVERR;
        for (size_t n = 0; data && n < BEAT; n++)
            if (beat.strobes >> n & 1) data[n] = beat.data[n];
        if (beat.last) responses.push_back(std::exchange(response, 0));
    }
}

}  // namespace

void serve(Vip& top) {
    static Memory memory(arguments[0], std::strtoul(arguments[1], nullptr, 0));
    if (!top.aresetn) return;
    serve_reads(top, memory);
    serve_writes(top, memory);
}
