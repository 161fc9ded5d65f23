#include "memory.h"

#include <algorithm>

// Pages that are cleared are touched: no measurement pays for the kernel's first look at one.
Memory::Memory(Session& session, size_t bytes) {
  void* memory = nullptr;
  must(ncclrunMemAlloc(&memory, std::max<size_t>(bytes, 1), session.isGpu() ? ncclrunDeviceCuda : ncclrunDeviceHost));
  data_ = static_cast<std::byte*>(memory);
  session.clear(data_, bytes);
}

Memory::~Memory() { ncclMemFree(data_); }

HostView::HostView(Session& session, std::byte* memory, size_t bytes)
    : session_(session), memory_(memory), copy_(session.isGpu() ? bytes : 0) {}

void HostView::load() {
  if (!copy_.empty()) session_.copy(copy_.data(), memory_, copy_.size());
}

void HostView::store() {
  if (!copy_.empty()) session_.copy(memory_, copy_.data(), copy_.size());
}
