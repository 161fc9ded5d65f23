// What a process has mapped: /proc/PID/maps.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ncclrun::stack {

struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t offset = 0;  // in the file
  bool isExecutable = false;
  std::string path;  // empty: of no file; "[vdso]", "[stack]"
};

// Lines that make no sense are left out; the rest is sorted as the kernel writes it.
std::vector<Mapping> parseMaps(std::string_view text);
std::vector<Mapping> readMaps(int pid);
// Null: nothing is mapped there.
const Mapping* mappingAt(const std::vector<Mapping>& maps, uint64_t address);
// All of a small file of /proc; empty if it cannot be read.
std::string readText(const char* path, size_t maxBytes);

}  // namespace ncclrun::stack
