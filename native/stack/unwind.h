// The frames of a stopped thread, from copies of its registers and stack.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "stack/byte_source.h"
#include "stack/elf_image.h"
#include "stack/registers.h"

namespace ncclrun::stack {

inline constexpr size_t kMaxFrames = 128;

struct CodeAddress {
  uint64_t pc = 0;        // as the process has it
  bool isReturn = false;  // it lies behind the call
  uint64_t inCall() const { return isReturn ? pc - 1 : pc; }
};

// What there is at an address of the process.
struct FoundCode {
  const ElfImage* image = nullptr;  // null: code of no file that can be read
  uint64_t address = 0;             // in the image, before relocation
  bool isExecutable = false;
};
using FindCode = std::function<FoundCode(uint64_t address)>;

struct Unwound {
  std::vector<CodeAddress> frames;  // the innermost first
  bool isCut = false;               // there are more
};

Unwound unwind(Registers registers, const FindCode& findCode, const ByteSource& memory);

}  // namespace ncclrun::stack
