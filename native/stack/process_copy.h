// What is kept of a stopped process: registers and stacks of its threads, and what it has mapped.
#pragma once
#include <cstdint>
#include <vector>

#include "stack/byte_source.h"
#include "stack/memory_map.h"
#include "stack/protocol.h"

namespace ncclrun::stack {

// Memory of the process, as it was.
class StackCopies : public ByteSource {
 public:
  void add(uint64_t address, std::vector<uint8_t> bytes) { parts_.push_back({address, std::move(bytes)}); }
  size_t readSome(uint64_t offset, void* out, size_t size) const override;

 private:
  struct Part {
    uint64_t address;
    std::vector<uint8_t> bytes;
  };
  std::vector<Part> parts_;
};

struct ProcessCopy {
  std::vector<Mapping> maps;
  StackCopies stacks;
};

// To be called while the process is stopped.
ProcessCopy copyProcess(const Packet& packet, const ByteSource& memory);

}  // namespace ncclrun::stack
