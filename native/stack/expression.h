// DWARF expressions, as far as call frame information uses them (DWARF 5, section 2.5).
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "stack/byte_source.h"
#include "stack/registers.h"

namespace ncclrun::stack {

// The value on top of the stack at the end; none for an expression that is damaged, too long or reads memory that is
// not there. `initial`: pushed first.
std::optional<uint64_t> evaluate(std::span<const uint8_t> expression, const Registers& registers,
                                 const ByteSource& memory, std::optional<uint64_t> initial);

}  // namespace ncclrun::stack
