#include "datapath/reduce.h"

#include <cstring>

namespace ncclrun {
namespace {

const ReduceTable& table() {
#if defined(__x86_64__)
  static const ReduceTable* const best = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq")) {
      return &kReduceAvx512;
    }
    return __builtin_cpu_supports("avx2") ? &kReduceAvx2 : &kReduceBase;
  }();
  return *best;
#else
  return kReduceBase;
#endif
}

}  // namespace

bool makeReduction(ncclDataType_t type, ncclRedOp_t op, const void* scalar, uint32_t ranks, Reduction& out) {
  if (int(type) < 0 || int(type) >= ncclNumTypes || int(op) < 0 || int(op) > int(kPreMulSum)) return false;
  const ReduceTable& all = table();
  out = {};
  out.reduce = all.reduce[type][int(op) < ReduceTable::kOps ? op : ncclSum];
  if (op == kPreMulSum) {
    out.scale = all.scale[type];
    all.widen[type](scalar, &out.scalar);
  } else if (op == ncclAvg && ranks > 1) {
    if (all.divide[type] != nullptr) {
      out.divide = all.divide[type];
      out.divisor = ranks;
    } else {
      out.scale = all.scale[type];
      const double exact = 1.0 / ranks;
      const auto rounded = float(exact);
      if (type == ncclFloat64) {
        std::memcpy(&out.scalar, &exact, sizeof exact);
      } else {
        std::memcpy(&out.scalar, &rounded, sizeof rounded);
      }
    }
  }
  return true;
}

ReduceFunction copyFunction() { return table().copy; }

}  // namespace ncclrun
