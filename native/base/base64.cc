#include "base/base64.h"

namespace ncclrun {
namespace {

int digit(char character) {
  if (character >= 'A' && character <= 'Z') return character - 'A';
  if (character >= 'a' && character <= 'z') return character - 'a' + 26;
  if (character >= '0' && character <= '9') return character - '0' + 52;
  if (character == '+') return 62;
  return character == '/' ? 63 : -1;
}

}  // namespace

bool decodeBase64(std::string_view text, std::vector<uint8_t>& bytes) {
  bytes.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  uint32_t bits = 0;
  int held = 0;
  for (const char character : text) {
    const int value = digit(character);
    if (value < 0) return false;
    bits = bits << 6 | static_cast<uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<uint8_t>(bits >> held));
  }
  return (bits & ((1u << held) - 1)) == 0;
}

}  // namespace ncclrun
