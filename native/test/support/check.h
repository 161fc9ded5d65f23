// A small test harness: TEST(name) { … EXPECT(condition); } and one main per program.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ncclrun::test {

struct Case {
  const char* name;
  void (*run)();
};
inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}
inline int& failures() {
  static int count = 0;
  return count;
}
struct Registered {
  Registered(const char* name, void (*run)()) { cases().push_back({name, run}); }
};

inline void expect(bool fine, const char* what, const char* file, int line, const std::string& more = "") {
  if (fine) return;
  failures()++;
  fprintf(stderr, "%s:%d: expected %s %s\n", file, line, what, more.c_str());
}

// Runs the cases whose names contain the first argument, or all.
inline int runAll(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  for (const Case& one : cases()) {
    if (std::string(one.name).find(wanted) == std::string::npos) continue;
    const int before = failures();
    one.run();
    printf("%s %s\n", failures() == before ? "ok    " : "FAILED", one.name);
    fflush(stdout);
  }
  return failures() == 0 ? 0 : 1;
}

}  // namespace ncclrun::test

#define TEST(name)                                                        \
  static void test_##name();                                              \
  static ncclrun::test::Registered registered_##name(#name, test_##name); \
  static void test_##name()
#define EXPECT(condition) ncclrun::test::expect((condition), #condition, __FILE__, __LINE__)
#define EXPECT_MORE(condition, more) ncclrun::test::expect((condition), #condition, __FILE__, __LINE__, more)
#define TEST_MAIN \
  int main(int argc, char** argv) { return ncclrun::test::runAll(argc, argv); }
