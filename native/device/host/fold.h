// Arithmetic of the host device: folds vectors into one, with the instructions this machine has.
#pragma once
#include <cstddef>
#include <cstdint>

#include "nccl.h"

namespace ncclrun {

// Folds `sources` vectors of `count` elements from left to right and stores the result in every one of `targets`. A
// target may be one of the sources exactly, not in part. No alignment needed. stream: store the last target past the
// caches (when it is large and not soon read). Integers wrap around; 16-bit floats are folded in float and rounded
// once.
using FoldFunction = void (*)(void* const* targets, uint32_t targetCount, const void* const* sources,
                              uint32_t sourceCount, size_t count, bool stream);

// Null if the type or the operator has no fold on the host device.
FoldFunction foldFunction(ncclDataType_t type, ncclRedOp_t op);
// Of single bytes with one source: a copy to several targets.
FoldFunction copyFunction();

// Bytes of one element; 0 for a type that does not exist.
size_t elementBytes(ncclDataType_t type);

// One table per instruction set; filled by fold_kernels.h.
struct FoldTable {
  static constexpr int kTypes = 10;  // ncclInt8 to ncclBfloat16
  static constexpr int kOps = 4;     // ncclSum, ncclProd, ncclMax, ncclMin
  FoldFunction fold[kTypes][kOps];
  FoldFunction copy;
};
extern const FoldTable kFoldBase;
#if defined(__x86_64__)
extern const FoldTable kFoldAvx2;
extern const FoldTable kFoldAvx512;
#endif

}  // namespace ncclrun
