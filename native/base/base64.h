// Base64 of RFC 4648, section 4: the alphabet with + and /, padded with =.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace ncclrun {

// False for a character outside the alphabet or padding that does not fit.
bool decodeBase64(std::string_view text, std::vector<uint8_t>& bytes);

}  // namespace ncclrun
