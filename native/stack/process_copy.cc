#include "stack/process_copy.h"

#include <algorithm>
#include <cstring>

namespace ncclrun::stack {
namespace {

// Of each stack from the stack pointer on. Deeper stacks are cut: kMaxFrames are fewer in nearly all programs.
constexpr uint64_t kMaxStackBytes = 1 << 20;
constexpr uint64_t kMaxOtherBytes = 256 << 10;
// System V ABI: a function may use this much below its stack pointer.
constexpr uint64_t kRedZone = 128;

}  // namespace

size_t StackCopies::readSome(uint64_t offset, void* out, size_t size) const {
  for (const Part& part : parts_) {
    if (offset < part.address || offset - part.address >= part.bytes.size()) continue;
    const size_t begin = static_cast<size_t>(offset - part.address);
    const size_t taken = std::min(size, part.bytes.size() - begin);
    memcpy(out, part.bytes.data() + begin, taken);
    return taken;
  }
  return 0;
}

ProcessCopy copyProcess(const Packet& packet, const ByteSource& memory) {
  ProcessCopy copy = {.maps = readMaps(packet.process), .stacks = {}};
  for (uint32_t i = 0; i < packet.threads; ++i) {
    const ThreadState& state = packet.states[i];
    if (!state.isStopped) continue;
    const uint64_t pointer = state.registers.stackPointer();
    const Mapping* mapping = mappingAt(copy.maps, pointer);
    if (mapping == nullptr) continue;
    const uint64_t begin = std::max(mapping->start, pointer - std::min(pointer, kRedZone));
    const uint64_t most = i == 0 ? kMaxStackBytes : kMaxOtherBytes;
    copy.stacks.add(begin, memory.copy(begin, static_cast<size_t>(std::min(mapping->end - begin, most))));
  }
  return copy;
}

}  // namespace ncclrun::stack
