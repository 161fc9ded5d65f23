// The command line of ncclrun-perf, as `ncclrun perf` writes it.
#pragma once
#include <cstddef>
#include <string>

struct Options {
  std::string collective;   // or "variants"
  std::string collectives;  // whose variants are measured, with commas
  size_t begin = 0;         // bytes
  size_t end = 0;           // bytes; of variants 0: what the device can take
  size_t factor = 2;        // from one size to the next
  int iterations = 20;      // of variants 0: likewise
  int warmup = 5;
  int rounds = 5;         // in which every variant is measured once
  bool blocking = false;  // waits for each operation before the next
  bool check = false;
  int root = 0;
  std::string type = "float";  // or "all"
  std::string op = "sum";      // or "all"
  std::string device = "auto";
};

// Throws std::invalid_argument with a sentence.
Options readOptions(int argc, char** argv);
