// Buffers where the session's communicator has them, and what the host sees of them.
#pragma once
#include <cstddef>
#include <vector>

#include "session.h"

// Bytes on the session's device, zeroed. Throws EngineError where there are not so many.
class Memory {
 public:
  Memory(Session& session, size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
};

// A part of a Memory for the host to read and write: the very bytes where they are the host's, else a copy of them.
class HostView {
 public:
  HostView(Session& session, std::byte* memory, size_t bytes);

  std::byte* data() { return session_.isGpu() ? copy_.data() : memory_; }
  void load();   // what the device has
  void store();  // what was written here

 private:
  Session& session_;
  std::byte* const memory_;
  std::vector<std::byte> copy_;  // empty on the host device
};
