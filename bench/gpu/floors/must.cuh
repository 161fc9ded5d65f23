// Ends the program with the place and the error of a call of CUDA's runtime or driver that fails.
#pragma once
#include <cstdio>
#include <cstdlib>

#define MUST(call)                                                                           \
  do {                                                                                       \
    const auto result_ = (call);                                                             \
    if (int(result_) != 0) {                                                                 \
      std::fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, int(result_)); \
      std::exit(1);                                                                          \
    }                                                                                        \
  } while (0)
