// Bytes that are read at an offset: a file, or the memory of a process. Whoever reads them expects that they are
// damaged.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ncclrun::stack {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Number of bytes read at `offset`: fewer than `size` at the end, 0 if nothing can be read.
  virtual size_t readSome(uint64_t offset, void* out, size_t size) const = 0;

  bool read(uint64_t offset, void* out, size_t size) const { return readSome(offset, out, size) == size; }
  template <typename Value>
  bool read(uint64_t offset, Value& out) const {
    return read(offset, &out, sizeof out);
  }
  // At most `size` bytes.
  std::vector<uint8_t> copy(uint64_t offset, size_t size) const;
};

// A file, or /proc/PID/mem. Owns the descriptor.
class FileSource : public ByteSource {
 public:
  explicit FileSource(int fd) : fd_(fd) {}
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override;
  size_t readSome(uint64_t offset, void* out, size_t size) const override;

 private:
  int fd_;
};

// A part of another source, with offsets from its start. The other must outlive it.
class PartSource : public ByteSource {
 public:
  PartSource(const ByteSource& whole, uint64_t start, uint64_t size) : whole_(whole), start_(start), size_(size) {}
  size_t readSome(uint64_t offset, void* out, size_t size) const override;

 private:
  const ByteSource& whole_;
  uint64_t start_;
  uint64_t size_;
};

// Bytes of this process, which must outlive it.
class SpanSource : public ByteSource {
 public:
  explicit SpanSource(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  size_t readSome(uint64_t offset, void* out, size_t size) const override;

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace ncclrun::stack
