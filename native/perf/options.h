// The command line of ncclrun-perf, as `ncclrun perf` writes it.
#pragma once
#include <cstddef>
#include <string>

struct Options {
  std::string collective;
  size_t begin = 0;   // bytes
  size_t end = 0;     // bytes
  size_t factor = 2;  // from one size to the next
  int iterations = 20;
  int warmup = 5;
  bool blocking = false;  // waits for each operation before the next
  bool check = false;
  int root = 0;
  std::string type = "float";  // or "all"
  std::string op = "sum";      // or "all"
  std::string device = "auto";
};

// Throws std::invalid_argument with a sentence.
Options readOptions(int argc, char** argv);
