// Sign extension in Verilated models, by two shifts: one instruction for a value of 8 or 16 bits.
//
// Verilator's functions negate and mask, which takes three. They have the names and arguments of
// these macros: the bits of the result, the bits of the value, the value. A result has undefined
// bits beyond its width, as Verilator's results have.

#pragma once

#include "verilated.h"

namespace weft {

template <int bits>
inline IData extend(IData value) {
    static_assert(0 < bits && bits <= 32);
    return static_cast<IData>(static_cast<int32_t>(value << (32 - bits)) >> (32 - bits));
}

template <int bits>
inline QData extend_long(QData value) {
    static_assert(0 < bits && bits <= 64);
    return static_cast<QData>(static_cast<int64_t>(value << (64 - bits)) >> (64 - bits));
}

}  // namespace weft

#undef VL_EXTENDS_II
#undef VL_EXTENDS_QI
#undef VL_EXTENDS_QQ
#undef VL_MULS_III
#define VL_EXTENDS_II(width, bits, value) weft::extend<bits>(value)
#define VL_EXTENDS_QI(width, bits, value) weft::extend_long<bits>(value)
#define VL_EXTENDS_QQ(width, bits, value) weft::extend_long<bits>(value)
#define VL_MULS_III(bits, a, b) (weft::extend<bits>(a) * weft::extend<bits>(b))
