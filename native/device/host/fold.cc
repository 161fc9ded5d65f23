#include "device/host/fold.h"

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

FoldFunction foldFunction(ncclDataType_t type, ncclRedOp_t op) {
  if (int(type) < 0 || int(type) >= FoldTable::kTypes || int(op) < 0 || int(op) >= FoldTable::kOps) return nullptr;
  return table().fold[type][op];
}

FoldFunction copyFunction() { return table().copy; }

size_t elementBytes(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

}  // namespace ncclrun
