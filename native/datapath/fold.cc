#include "datapath/fold.h"

#include <cstring>

namespace ncclrun {
namespace {

const FoldTable& table() {
#if defined(__x86_64__)
  static const FoldTable* const best = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq")) {
      return &kFoldAvx512;
    }
    return __builtin_cpu_supports("avx2") ? &kFoldAvx2 : &kFoldBase;
  }();
  return *best;
#else
  return kFoldBase;
#endif
}

}  // namespace

bool makeReduction(ncclDataType_t type, ncclRedOp_t op, const void* scalar, uint32_t ranks, Reduction& out) {
  if (int(type) < 0 || int(type) >= ncclNumTypes || int(op) < 0 || int(op) > int(kPreMulSum)) return false;
  const FoldTable& all = table();
  out = {};
  out.fold = all.fold[type][int(op) < FoldTable::kOps ? op : ncclSum];
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

FoldFunction copyFunction() { return table().copy; }

}  // namespace ncclrun
