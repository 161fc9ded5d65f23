// Call frame information (.eh_frame): how to get from a frame's registers to its caller's. DWARF 5, section 6.4, and
// the Linux Standard Base's additions.
#pragma once
#include <cstdint>
#include <optional>

#include "stack/byte_source.h"
#include "stack/elf_image.h"
#include "stack/registers.h"

namespace ncclrun::stack {

enum class Step {
  stepped,
  outermost,  // the frame says that it has no caller
  unknown,    // there is no usable information about its code
};

// Replaces the registers by the caller's. `address`: of the code, before relocation.
// `isSignalFrame` becomes true if the frame is a signal handler's return: its caller's pc is no return address.
Step stepByCallFrame(const ElfImage& image, uint64_t address, const ByteSource& memory, Registers& registers,
                     bool& isSignalFrame);

}  // namespace ncclrun::stack
