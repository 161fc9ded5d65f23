// Reads numbers out of bytes that may be damaged. After a read beyond the end it fails, and gives zeros from then on.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>

namespace ncclrun::stack {

class Cursor {
 public:
  explicit Cursor(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  bool atEnd() const { return failed_ || offset_ == bytes_.size(); }
  size_t offset() const { return offset_; }
  size_t left() const { return failed_ ? 0 : bytes_.size() - offset_; }
  void fail() { failed_ = true; }

  template <typename Value>
  Value take() {
    Value value = {};
    if (left() < sizeof value) {
      failed_ = true;
      return value;
    }
    memcpy(&value, bytes_.data() + offset_, sizeof value);
    offset_ += sizeof value;
    return value;
  }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; !failed_; shift += 7) {
      const uint8_t byte = take<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) break;
    }
    return failed_ ? 0 : value;
  }

  int64_t sleb() {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte = 0;
    do {
      byte = take<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
    } while (!failed_ && (byte & 0x80) != 0);
    if (failed_) return 0;
    if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }

  // Empty at the end, too.
  std::span<const uint8_t> bytes(uint64_t size) {
    if (size > left()) {
      failed_ = true;
      return {};
    }
    const std::span<const uint8_t> taken = bytes_.subspan(offset_, static_cast<size_t>(size));
    offset_ += static_cast<size_t>(size);
    return taken;
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t offset_ = 0;
  bool failed_ = false;
};

}  // namespace ncclrun::stack
