// An IP core with AXI4-Lite, and an AXI4 master with a memory: a file that is shared.
//
// The arguments are the file and the address of its first byte. Addresses outside the memory are
// answered with DECERR. A burst is answered from the next cycle on; no channel pauses.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdlib>
#include <utility>

#include "mmio_axi_lite.h"

#define AXI_PIN(top, name) (top).m_axi_##name
#include "axi_memory.h"

namespace {

using Memory = AxiMemory<sizeof(std::declval<Vip>().m_axi_rdata)>;

Memory open_memory() {
    const char* path = arguments[0];
    int file = open(path, O_RDWR);
    struct stat status;
    void* map = MAP_FAILED;
    if (file >= 0 && !fstat(file, &status))
        map = mmap(nullptr, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    uint64_t base = std::strtoul(arguments[1], nullptr, 0);
    return Memory(static_cast<uint8_t*>(map), base, status.st_size);
}

}  // namespace

void serve(Vip& top) {
    static Memory memory = open_memory();
    if (top.aresetn) memory.serve(top);
}
