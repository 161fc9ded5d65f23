// The memory of chunks that an aggregator holds, with a limit.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace ncclrun::aggregator {

class ChunkMemory;

// One chunk's bytes; goes back to its memory with its owner.
class Chunk {
 public:
  Chunk() = default;
  Chunk(Chunk&& other) noexcept;
  Chunk& operator=(Chunk&& other) noexcept;
  ~Chunk();

  std::byte* data() const { return data_.get(); }

 private:
  friend class ChunkMemory;
  ChunkMemory* memory_ = nullptr;
  std::unique_ptr<std::byte[]> data_;
  size_t capacity_ = 0;
};

// Used by one thread. Outlives its chunks.
class ChunkMemory {
 public:
  explicit ChunkMemory(size_t limit) : limit_(limit) {}
  ChunkMemory(const ChunkMemory&) = delete;
  ChunkMemory& operator=(const ChunkMemory&) = delete;

  // False: the limit is reached, and the chunk is not one that everything waits for.
  bool take(size_t bytes, bool isAwaited, Chunk& out);
  bool isFull() const { return used_ >= limit_; }
  size_t used() const { return used_; }
  size_t mostUsed() const { return mostUsed_; }

 private:
  friend class Chunk;
  void giveBack(std::unique_ptr<std::byte[]> data, size_t capacity);

  const size_t limit_;
  size_t used_ = 0, mostUsed_ = 0;
  std::map<size_t, std::vector<std::unique_ptr<std::byte[]>>> free_;  // by capacity
};

}  // namespace ncclrun::aggregator
