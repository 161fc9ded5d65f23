// Names for the addresses of a process.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "stack/modules.h"
#include "stack/perf_map.h"
#include "stack/report.h"
#include "stack/unwind.h"

namespace ncclrun::stack {

// Collects the addresses of all threads first: each file's symbols are read once.
class Symboliser {
 public:
  Symboliser(int process, const std::vector<Mapping>& maps, const ByteSource& memory, Modules& modules)
      : process_(process), maps_(maps), memory_(memory), modules_(modules) {}

  FoundCode findCode(uint64_t address);
  void expect(const CodeAddress& address);
  // Reads the symbols of all that are expected.
  void load();
  NativeFrame frameOf(const CodeAddress& address) const;

 private:
  struct Known {
    Symbol symbol;
    uint64_t place = 0;
  };
  int process_;
  const std::vector<Mapping>& maps_;
  const ByteSource& memory_;
  Modules& modules_;
  std::map<const ElfImage*, std::map<uint64_t, std::vector<uint64_t>>> expected_;  // image → place → addresses
  bool hasMadeCode_ = false;                                                       // there are addresses of no file
  PerfMap made_;
  std::map<uint64_t, Known> known_;  // by address
};

// A C++ name as programmers write it; others as they are.
std::string demangled(const std::string& name);

}  // namespace ncclrun::stack
