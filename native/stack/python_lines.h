// Lines of Python code, from the tables that code objects carry. The formats are CPython's, Objects/lnotab_notes.txt
// (3.9, 3.10) and Objects/locations.md (3.11 on).
#pragma once
#include <cstdint>
#include <span>

namespace ncclrun::stack {

// Line of the instruction at a byte offset; 0: it has none, or the table is damaged. `minor`: of the version, 3.minor.
uint32_t pythonLine(unsigned minor, std::span<const uint8_t> table, int64_t firstLine, uint64_t offset);

}  // namespace ncclrun::stack
