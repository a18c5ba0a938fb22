// A Verilated accelerator behind USB, with the bus at its pins; the host is at stdin and stdout.
//
// The simulation runs while the bus does what a command says, so the time of the host does not
// count. All numbers are little-endian. Each answer begins with the time in picoseconds (64 bits).
//
//     S, size (16), bytes   send a packet, from its PID on
//     R                     receive a packet: size (16), bytes; 0xffff without an answer in time
//     I, nanoseconds (32)   the bus is idle
//     X                     reset the bus
//
// Compiled with SYNC_HZ, USB_HZ and either USB_IO_HZ, for the two wires of full speed, or ULPI, for
// a PHY of high speed.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "Vboard.h"
#include "model.h"

namespace {

using Bytes = std::vector<uint8_t>;

[[noreturn]] void fail(const char* text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

// The board and its clocks.
class Board {
public:
    Vboard top;
    double now = 0;  // picoseconds

    Board() { top.connect = 1; }

    // Runs until before the edges at a time.
    void run_until(double time) {
        for (;;) {
            Clock* first = std::min_element(clocks_, std::end(clocks_));
            if (first->next >= time) break;
            edge(*first);
        }
        now = time;
    }

    // Runs until before the next rising edge of the clock of USB.
    void run_before_usb() {
        while (usb().level || *std::min_element(clocks_, std::end(clocks_)) < usb()) {
            edge(*std::min_element(clocks_, std::end(clocks_)));
        }
        now = usb().next;
    }

    void usb_edge() { edge(usb()); }

private:
    struct Clock {
        uint8_t* port;
        double half, next;
        bool level;
        bool operator<(const Clock& other) const { return next < other.next; }
    };

    Clock clocks_[USB_CLOCKS + 1] = {
        {&top.usb_clk, 5e11 / USB_HZ, 5e11 / USB_HZ, false},
        {&top.clk, 5e11 / SYNC_HZ, 5e11 / SYNC_HZ, false},
#ifndef ULPI
        {&top.usb_io_clk, 5e11 / USB_IO_HZ, 5e11 / USB_IO_HZ, false},
#endif
    };

    Clock& usb() { return clocks_[0]; }

    void edge(Clock& clock) {
        clock.level = !clock.level;
        *clock.port = clock.level;
        now = clock.next;
        clock.next += clock.half;
        top.eval();
    }
};

#ifdef ULPI

// A PHY of high speed with its bus (ULPI 1.1). USB 2.0, 5.8.4 and 7.1.18: a packet has SYNC of 32
// bits and EOP of 8; the host waits for 88 bits between two packets. A cycle has 8 bits.
class Bus {
public:
    explicit Bus(Board& board) : board_(board) {}

    void send(const Bytes& packet) {
        idle_cycles(GAP + SYNC);
        cycle(0, true, true);
        cycle(J | VBUS | ACTIVE, true, false);
        for (uint8_t byte : packet) cycle(byte, true, true);
        cycle(SE0 | VBUS, true, false);
        idle_cycles(EOP + 1);
    }

    bool receive(Bytes& packet) {
        for (int n = 0; n < LATE && sent_.empty(); n++) idle_cycles(1);
        if (sent_.empty()) return false;
        packet = sent_;
        sent_.clear();
        return true;
    }

    void idle(double picoseconds) {
        for (double end = board_.now + picoseconds; board_.now < end;) idle_cycles(1);
    }

    void reset() {  // USB 2.0, 7.1.7.5
        chirped_ = false;
        line(J);
        idle_cycles(1000);
        line(SE0);
        for (int n = 0; n < 1000000 && !chirped_; n++) idle_cycles(1);
        if (!chirped_) fail("the device did not chirp within 16 ms");
        for (int n = 0; n < 4; n++) {
            for (int state : {K, J}) {
                line(state);
                idle_cycles(170);
            }
        }
        line(SE0);
        idle_cycles(100);
    }

private:
    static constexpr int J = 1, K = 2, SE0 = 0, VBUS = 3 << 2, ACTIVE = 1 << 4;
    static constexpr int GAP = 11, SYNC = 4, EOP = 1;  // cycles
    static constexpr size_t LONGEST = 600;  // bytes; no packet of a device is longer
    static constexpr int LATE = 112;  // cycles: 816 bits, and the latency of the PHY
    Board& board_;
    Bytes sent_;
    bool chirped_ = false;

    struct Driven {
        int data;
        bool stp;
    };

    // What the device drives in a cycle.
    Driven cycle(int data, bool dir, bool nxt) {
        board_.top.data_i = data;
        board_.top.dir_i = dir;
        board_.top.nxt_i = nxt;
        board_.top.eval();
        board_.run_before_usb();
        Driven driven{board_.top.data_o, bool(board_.top.stp_o)};
        board_.usb_edge();
        return driven;
    }

    void idle_cycles(int count) {
        while (count-- > 0) {
            int command = cycle(0, false, false).data;
            if (command >> 6 == 2) {  // a write to a register
                cycle(0, false, true);
                cycle(0, false, true);
                if (!cycle(0, false, false).stp) fail("STP must follow the byte of a register");
            } else if (command >> 6 == 1) {
                transmit(command & 15);
            }
        }
    }

    void transmit(int pid) {
        cycle(0, false, true);
        Bytes packet;
        if (pid) packet.push_back(pid | (~pid & 15) << 4);
        bool stp = false;  // it may follow the command at once
        for (int n = 0; pid && n < SYNC + 1; n++) stp |= cycle(0, false, false).stp;
        while (!stp) {
            Driven driven = cycle(0, false, true);
            stp = driven.stp;
            if (!stp) packet.push_back(driven.data);
            if (pid && packet.size() > LONGEST) fail("the packet of the device has no end");
        }
        for (int n = 0; n < EOP; n++) cycle(0, false, false);
        if (pid) {
            sent_ = packet;
        } else {
            chirped_ = true;
        }
    }

    void line(int state) {
        cycle(0, true, true);
        cycle(state | VBUS, true, false);
        idle_cycles(5);
    }
};

#else

// The two wires of full speed: NRZI, bit stuffing, SYNC and EOP (USB 2.0, chapter 7). The host
// samples four times in a bit, and finds the middle of a bit from the last edge.
class Bus {
public:
    explicit Bus(Board& board) : board_(board) { drive(SE0); }

    void send(const Bytes& packet) {
        wait(GAP * BIT);
        Level state = J;
        int ones = 0;
        auto send_bit = [&](bool bit) {
            if (!bit) state = state == J ? K : J;
            ones = bit ? ones + 1 : 0;
            drive(state);
            wait(BIT);
            if (ones == 6) {
                state = state == J ? K : J;
                ones = 0;
                drive(state);
                wait(BIT);
            }
        };
        for (int n = 0; n < 8; n++) send_bit(n == 7);
        for (uint8_t byte : packet) {
            for (int n = 0; n < 8; n++) send_bit(byte >> n & 1);
        }
        for (Level level : {SE0, SE0, J}) {
            drive(level);
            wait(BIT);
        }
    }

    bool receive(Bytes& packet) {
        int late = 4 * LATE;
        while (level() != K) {
            if (!late--) return false;
            wait(BIT / 4);
        }
        std::vector<bool> bits;
        int ends = 0, ones = 0;
        Level before = J, last = K;
        for (int since = 0; ends < 2;) {
            Level now = level();
            if (now == NONE) fail("the device let go of the wires in a packet");
            since = now == last ? since + 1 : 0;
            last = now;
            if (since % 4 == 1) {
                if (now == SE0) {
                    ends++;
                } else {
                    bool bit = now == before;
                    before = now;
                    if (ones == 6 && bit) fail("a zero must follow six ones");
                    if (ones != 6) bits.push_back(bit);
                    ones = bit ? ones + 1 : 0;
                }
            }
            wait(BIT / 4);
        }
        wait(BIT);
        if (bits.size() % 8) fail("the device sent a part of a byte");
        packet.clear();
        for (size_t n = 8; n < bits.size(); n += 8) {  // after SYNC
            int byte = 0;
            for (int i = 0; i < 8; i++) byte |= bits[n + i] << i;
            packet.push_back(byte);
        }
        return true;
    }

    void idle(double picoseconds) {
        drive(J);
        wait(picoseconds);
    }

    void reset() {
        idle(2e6);
        drive(SE0);
        wait(30e6);
        idle(4e6);
    }

private:
    enum Level { SE0 = 0, J = 1, K = 2, NONE = 4 };  // D+ is bit 0
    static constexpr double BIT = 1e12 / 12e6;
    static constexpr int GAP = 2, LATE = 18;  // bits
    Board& board_;

    void wait(double picoseconds) { board_.run_until(board_.now + picoseconds); }

    void drive(Level level) {
        board_.top.d_p_i = level & 1;
        board_.top.d_n_i = level >> 1 & 1;
    }

    Level level() {
        if (!board_.top.d_p_oe) return NONE;
        return Level(board_.top.d_p_o | board_.top.d_n_o << 1);
    }
};

#endif

}  // namespace

int main() {
    Board board;
    Bus bus(board);
    uint8_t command;
    while (read_all(&command, 1)) {
        Bytes packet;
        bool received = false;
        if (command == 'S') {
            uint16_t size;
            if (!read_all(&size, 2)) return 0;
            packet.resize(size);
            if (!read_all(packet.data(), size)) return 0;
            bus.send(packet);
        } else if (command == 'R') {
            received = bus.receive(packet);
        } else if (command == 'I') {
            uint32_t nanoseconds;
            if (!read_all(&nanoseconds, 4)) return 0;
            bus.idle(1e3 * nanoseconds);
        } else if (command == 'X') {
            bus.reset();
        } else {
            fail("a command must be S, R, I or X");
        }
        uint64_t time = uint64_t(board.now);
        write_all(&time, 8);
        if (command == 'R') {
            uint16_t size = received ? packet.size() : 0xffff;
            write_all(&size, 2);
            if (received) write_all(packet.data(), size);
        }
    }
    return 0;
}
