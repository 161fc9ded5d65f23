#include "stack/python_lines.h"

#include "stack/cursor.h"

namespace ncclrun::stack {
namespace {

uint32_t checked(int64_t line) { return line > 0 && line <= INT32_MAX ? static_cast<uint32_t>(line) : 0; }

// Pairs: how far the next line's code is, and the difference of the lines.
uint32_t lineByPairs(std::span<const uint8_t> table, int64_t line, uint64_t offset) {
  Cursor cursor(table);
  uint64_t address = 0;
  while (cursor.left() >= 2) {
    address += cursor.take<uint8_t>();
    if (address > offset) break;
    line += cursor.take<int8_t>();
  }
  return checked(line);
}

// Pairs: the length of the code, and the difference to the line before; -128: it has no line.
uint32_t lineByRanges(std::span<const uint8_t> table, int64_t line, uint64_t offset) {
  Cursor cursor(table);
  uint64_t end = 0;
  while (cursor.left() >= 2) {
    end += cursor.take<uint8_t>();
    const auto difference = cursor.take<int8_t>();
    if (difference != -128) line += difference;
    if (offset < end) return difference == -128 ? 0 : checked(line);
  }
  return 0;
}

// Six bits a byte, the lowest first.
uint64_t takeVariable(Cursor& cursor) {
  uint64_t value = 0;
  for (unsigned shift = 0; !cursor.failed() && shift < 60; shift += 6) {
    const auto byte = cursor.take<uint8_t>();
    value |= uint64_t{byte & 0x3fu} << shift;
    if ((byte & 0x40) == 0) break;
  }
  return value;
}

int64_t takeSigned(Cursor& cursor) {
  const uint64_t value = takeVariable(cursor);
  const auto magnitude = static_cast<int64_t>(value >> 1);
  return (value & 1) != 0 ? -magnitude : magnitude;
}

uint32_t lineByLocations(std::span<const uint8_t> table, int64_t line, uint64_t offset) {
  Cursor cursor(table);
  uint64_t end = 0;
  while (!cursor.atEnd()) {
    const auto first = cursor.take<uint8_t>();
    if ((first & 0x80) == 0) return 0;
    const unsigned code = (first >> 3) & 15;
    end += ((first & 7u) + 1) * 2;
    if (code == 14) {
      line += takeSigned(cursor);
      for (int i = 0; i < 3; ++i) takeVariable(cursor);
    } else if (code == 13) {
      line += takeSigned(cursor);
    } else if (code >= 10 && code <= 12) {
      line += code - 10;
      cursor.take<uint16_t>();
    } else if (code < 10) {
      cursor.take<uint8_t>();
    }
    if (cursor.failed() || line < INT32_MIN || line > INT32_MAX) return 0;
    if (offset < end) return code == 15 ? 0 : checked(line);
  }
  return 0;
}

}  // namespace

uint32_t pythonLine(unsigned minor, std::span<const uint8_t> table, int64_t firstLine, uint64_t offset) {
  if (minor <= 9) return lineByPairs(table, firstLine, offset);
  if (minor == 10) return lineByRanges(table, firstLine, offset);
  return lineByLocations(table, firstLine, offset);
}

}  // namespace ncclrun::stack
