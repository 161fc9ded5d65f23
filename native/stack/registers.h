// Registers of a thread under the numbers that DWARF gives them on this machine.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ncclrun::stack {

#if defined(__x86_64__)
// System V ABI, AMD64 supplement, figure 3.36.
inline constexpr size_t kRegisters = 17;
inline constexpr size_t kFramePointer = 6;
inline constexpr size_t kStackPointer = 7;
inline constexpr size_t kReturnAddress = 16;
inline constexpr uint16_t kElfMachine = 62;  // EM_X86_64
#elif defined(__aarch64__)
// DWARF for the Arm 64-bit architecture, section 4.1. The program counter has no number.
inline constexpr size_t kRegisters = 32;
inline constexpr size_t kFramePointer = 29;
inline constexpr size_t kStackPointer = 31;
inline constexpr size_t kReturnAddress = 30;
inline constexpr uint16_t kElfMachine = 183;  // EM_AARCH64
#else
#error "stacks are read on x86-64 and aarch64"
#endif

struct Registers {
  uint64_t pc = 0;
  uint64_t value[kRegisters] = {};

  uint64_t stackPointer() const { return value[kStackPointer]; }
  uint64_t framePointer() const { return value[kFramePointer]; }
};

// A return address without the bits by which aarch64 authenticates pointers.
inline uint64_t plainAddress(uint64_t address) {
#if defined(__aarch64__)
  return address & ((uint64_t{1} << 48) - 1);
#else
  return address;
#endif
}

}  // namespace ncclrun::stack
