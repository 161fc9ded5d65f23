#include "stack/unwind.h"

#include "stack/call_frame.h"

namespace ncclrun::stack {
namespace {

// Code without call frame information: made at run time, or hand-written. It keeps the chain of frame pointers, or
// there is no way on.
bool stepByFramePointer(const ByteSource& memory, Registers& registers) {
  const uint64_t frame = registers.framePointer();
  uint64_t saved[2];  // the caller's frame pointer, and the return address
  if (frame % 8 != 0 || frame < registers.stackPointer() || !memory.read(frame, saved)) return false;
  registers.value[kFramePointer] = saved[0];
  registers.value[kStackPointer] = frame + sizeof saved;
  registers.pc = plainAddress(saved[1]);
  return true;
}

// A call to an address without code: the caller's is on top of the stack, or in the link register.
bool stepFromNowhere(const ByteSource& memory, Registers& registers) {
#if defined(__x86_64__)
  uint64_t caller = 0;
  if (!memory.read(registers.stackPointer(), caller)) return false;
  registers.value[kStackPointer] += sizeof caller;
#else
  (void)memory;
  const uint64_t caller = registers.value[kReturnAddress];
#endif
  registers.pc = plainAddress(caller);
  return true;
}

}  // namespace

Unwound unwind(Registers registers, const FindCode& findCode, const ByteSource& memory) {
  Unwound found;
  bool isReturn = false;
  for (;;) {
    const CodeAddress here = {registers.pc, isReturn};
    const FoundCode code = findCode(here.inCall());
    if (!code.isExecutable && !found.frames.empty()) return found;
    if (found.frames.size() == kMaxFrames) {
      found.isCut = true;
      return found;
    }
    found.frames.push_back(here);
    const uint64_t before = registers.stackPointer();
    bool isSignalFrame = false;
    Step step = Step::unknown;
    if (code.image != nullptr) step = stepByCallFrame(*code.image, code.address, memory, registers, isSignalFrame);
    if (step == Step::outermost) return found;
    if (step == Step::unknown) {
      const bool isStepped =
          code.isExecutable ? stepByFramePointer(memory, registers) : stepFromNowhere(memory, registers);
      if (!isStepped) return found;
    }
    // A handler may run on a stack of its own; every other caller's stack lies above. aarch64: a leaf may use none.
    const bool isFirst = found.frames.size() == 1;
    if (!isSignalFrame && (registers.stackPointer() < before || (registers.stackPointer() == before && !isFirst)))
      return found;
    if (registers.pc == 0) return found;
    isReturn = !isSignalFrame;
  }
}

}  // namespace ncclrun::stack
