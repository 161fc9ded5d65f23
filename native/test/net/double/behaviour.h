// What a test plants in the double, and what the double has counted. NCCLRUN_NET_DOUBLE is a list of NAME or
// NAME=NUMBER, separated by commas; behaviour.cc lists the names.
#pragma once

namespace ncclrun::test::doubled {

// The number of a planted behaviour (1 where it has none); `otherwise`: it is not planted. An unknown name aborts.
long planted(const char* name, long otherwise = 0);

void count(const char* what, long by = 1);

// The plugin's caller has broken a rule of the interface.
[[noreturn]] void broken(const char* rule);

}  // namespace ncclrun::test::doubled

// How often something was counted: tests find it with dlsym().
extern "C" long netDoubleCount(const char* what);
