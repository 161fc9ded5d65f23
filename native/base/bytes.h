// Little-endian payloads: what control/messages writes and reads in TypeScript.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ncclrun {

using Bytes = std::vector<std::byte>;

class ByteWriter {
 public:
  template <typename Number>
  ByteWriter& number(Number value) {
    return raw(&value, sizeof value);
  }
  ByteWriter& u32(uint32_t value) { return number(value); }
  ByteWriter& u64(uint64_t value) { return number(value); }
  ByteWriter& i32(int32_t value) { return number(value); }
  ByteWriter& text(std::string_view value) {
    return u32(static_cast<uint32_t>(value.size())).raw(value.data(), value.size());
  }
  ByteWriter& raw(const void* data, size_t bytes) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + bytes);
    return *this;
  }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

// Reads on after the end yield zeros and make complete() false, so that a reader checks once.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  uint32_t u32() { return number<uint32_t>(); }
  std::string text() {
    const auto bytes = take(u32());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void raw(void* target, size_t count) {
    const auto bytes = take(count);
    if (!bytes.empty()) std::memcpy(target, bytes.data(), bytes.size());
  }
  // True if everything asked for was there and nothing is left.
  bool complete() const { return !short_ && rest_.empty(); }

 private:
  template <typename Number>
  Number number() {
    Number value{};
    raw(&value, sizeof value);
    return value;
  }
  std::span<const std::byte> take(size_t count) {
    if (count > rest_.size()) {
      short_ = true;
      rest_ = {};
      return {};
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  std::span<const std::byte> rest_;
  bool short_ = false;
};

}  // namespace ncclrun
