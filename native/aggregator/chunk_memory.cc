#include "aggregator/chunk_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "aggregator/wire.h"

namespace ncclrun::aggregator {
namespace {

constexpr size_t kLeastChunk = 64;
constexpr size_t kSmallChunk = 16 << 10;  // up to here a chunk has memory of the next power of two
constexpr size_t kKeptChunks = 64;        // of each size, that nobody uses

}  // namespace

Chunk::Chunk(Chunk&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), data_(std::move(other.data_)), capacity_(other.capacity_) {}

Chunk& Chunk::operator=(Chunk&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

Chunk::~Chunk() {
  if (memory_ != nullptr) memory_->giveBack(std::move(data_), capacity_);
}

bool ChunkMemory::take(size_t bytes, bool isAwaited, Chunk& out) {
  if (isFull() && !isAwaited) return false;
  Chunk made;
  made.memory_ = this;
  made.capacity_ = bytes <= kSmallChunk ? std::bit_ceil(std::max(bytes, kLeastChunk)) : kChunkBytes;
  if (auto& free = free_[made.capacity_]; !free.empty()) {
    made.data_ = std::move(free.back());
    free.pop_back();
  } else {
    made.data_ = std::make_unique_for_overwrite<std::byte[]>(made.capacity_);
  }
  used_ += made.capacity_;
  mostUsed_ = std::max(mostUsed_, used_);
  out = std::move(made);
  return true;
}

void ChunkMemory::giveBack(std::unique_ptr<std::byte[]> data, size_t capacity) {
  used_ -= capacity;
  if (auto& free = free_[capacity]; free.size() < kKeptChunks) free.push_back(std::move(data));
}

}  // namespace ncclrun::aggregator
