// What the reader of stacks knows without a process: line tables of Python, maps, names, and its own file.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "expect.h"
#include "stack/elf_image.h"
#include "stack/memory_map.h"
#include "stack/perf_map.h"
#include "stack/python_lines.h"
#include "stack/symbolise.h"

using namespace ncclrun::stack;

namespace {

__attribute__((noinline)) int known(int number) { return number * 3 + 1; }

uint32_t lineOf(unsigned minor, const std::vector<uint8_t>& table, uint64_t offset) {
  return pythonLine(minor, table, 10, offset);
}

// 3.9: (6 bytes, +1), (8, +2), (4, -1).
void linesByPairs() {
  const std::vector<uint8_t> table = {6, 1, 8, 2, 4, 0xff};
  EXPECT(lineOf(9, table, 0) == 10);
  EXPECT(lineOf(9, table, 5) == 10);
  EXPECT(lineOf(9, table, 6) == 11);
  EXPECT(lineOf(9, table, 14) == 13);
  EXPECT(lineOf(9, table, 400) == 12);
}

// 3.10: 6 bytes of line 11, 4 without a line, 8 of line 13.
void linesByRanges() {
  const std::vector<uint8_t> table = {6, 1, 4, 0x80, 8, 2};
  EXPECT(lineOf(10, table, 0) == 11);
  EXPECT(lineOf(10, table, 6) == 0);
  EXPECT(lineOf(10, table, 10) == 13);
  EXPECT(lineOf(10, table, 18) == 0);
}

// 3.11: a short form of line 10 (2 units), +1 line (1 unit), no columns -2 (4 units), a long form +70, none.
void linesByLocations() {
  const std::vector<uint8_t> table = {
      0x80 | 0 << 3 | 1, 0x12, 0x80 | 11 << 3, 1, 2, 0x80 | 13 << 3 | 3, 0x05, 0x80 | 14 << 3, 0x4c, 2, 0x01, 3, 4,
      0x80 | 15 << 3};
  EXPECT(lineOf(11, table, 0) == 10);
  EXPECT(lineOf(11, table, 4) == 11);
  EXPECT(lineOf(11, table, 6) == 9);
  EXPECT(lineOf(11, table, 13) == 9);
  EXPECT(lineOf(12, table, 14) == 79);
  EXPECT(lineOf(13, table, 16) == 0);
  EXPECT(lineOf(14, {0x12, 0x80}, 0) == 0);
}

void mapsAndNames() {
  const std::vector<Mapping> maps = parseMaps(
      "1000-3000 r-xp 00002000 08:01 42                         /lib/a b.so (deleted)\nbad\n"
      "7000-8000 rwxp 00000000 00:00 0 \n");
  EXPECT(maps.size() == 2);
  EXPECT(maps[0].path == "/lib/a b.so (deleted)" && maps[0].offset == 0x2000 && maps[0].isExecutable);
  EXPECT(mappingAt(maps, 0x2fff) == &maps[0] && mappingAt(maps, 0x3000) == nullptr);
  EXPECT(mappingAt(maps, 0x7000) == &maps[1] && maps[1].path.empty());
  const PerfMap made("7000 20 JS:*old a.js:1:1\n7000 40 JS:*train a.js:2:1\nbad line\n");
  EXPECT(made.nameAt(0x7000) == "JS:*train a.js:2:1" && made.nameAt(0x703f) == "JS:*train a.js:2:1");
  EXPECT(made.nameAt(0x7040).empty() && made.nameAt(0x6fff).empty());
  EXPECT(demangled("_ZN2at6native3addEi") == "at::native::add(int)");
  EXPECT(demangled("_Znonsense") == "_Znonsense" && demangled("read") == "read");
}

// This program finds its own function, by name and by an address inside.
void ownFile() {
  const auto image = ElfImage::open(std::make_unique<FileSource>(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)));
  EXPECT(image != nullptr);
  const std::vector<Mapping> maps = readMaps(getpid());
  const auto pc = reinterpret_cast<uint64_t>(&known);
  const Mapping* mapping = mappingAt(maps, pc);
  EXPECT(mapping != nullptr && mapping->isExecutable);
  const std::optional<uint64_t> place = image->addressAt(pc - mapping->start + mapping->offset);
  EXPECT(place.has_value());
  const uint64_t addresses[] = {*place, *place + 1};
  const std::vector<Symbol> symbols = image->symbolsAt(addresses);
  EXPECT(symbols[1].address == *place && demangled(symbols[1].name) == "(anonymous namespace)::known(int)");
  EXPECT(image->addressOf(symbols[0].name.c_str()) == place);
  EXPECT(!image->addressOf("no such name").has_value());
}

}  // namespace

int main() {
  linesByPairs();
  linesByRanges();
  linesByLocations();
  mapsAndNames();
  ownFile();
  return known(1) == 4 ? 0 : 1;
}
