// Names of code that is made at run time: /tmp/perf-PID.map, which Node writes with --perf-basic-prof, and other
// virtual machines with options of their own.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ncclrun::stack {

class PerfMap {
 public:
  PerfMap() = default;
  // Lines "start size name" with hexadecimal numbers; others are left out. Of code that was moved the last line counts.
  explicit PerfMap(std::string_view text);
  // That of the process; empty if there is none, or if it belongs to somebody else than the process.
  static PerfMap of(int process);
  // Empty: unknown.
  std::string nameAt(uint64_t address) const;

 private:
  struct Entry {
    uint64_t start;
    uint64_t size;
    std::string name;
  };
  std::vector<Entry> entries_;  // by start
};

}  // namespace ncclrun::stack
