// FNV-1a, 64 bits (RFC 9923).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ncclrun {

class Fnv {
 public:
  void add(const void* data, size_t bytes) {
    const auto* first = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < bytes; i++) value_ = (value_ ^ first[i]) * 0x100000001b3;
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace ncclrun
