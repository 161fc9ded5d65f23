// libFuzzer target: any bytes as a HostPlan. What PlanView accepts, every accessor must be able to read.
//   clang++ -std=c++20 -fsanitize=fuzzer,address,undefined …; native/test/plan_view_test.cc runs the same function over
//   mutated plans.
#include "fuzz/plan_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ncclrun::test::readEverything({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
