// Arithmetic of the host device: reduces vectors with the best instructions of this machine.
#pragma once
#include <cstddef>
#include <cstdint>

#include "nccl.h"

namespace ncclrun {

// Reduces `sources` vectors of `count` elements from left to right and stores the result in every one of `targets`. A
// target may be one of the sources exactly, not in part. No alignment needed. stream: store the last target past the
// caches (when it is large and not soon read). Integers wrap around. 8- and 16-bit floats are reduced in float and
// rounded once, to nearest, ties to even; what is too large for an 8-bit float becomes its largest finite value.
// Maximum and minimum leave NaNs out where there is a number, and -0 is less than +0: so no order of reduction changes
// them.
using ReduceFunction = void (*)(void* const* targets, uint32_t targetCount, const void* const* sources,
                                uint32_t sourceCount, size_t count, bool stream);

// target[i] = source[i] × *scalar, rounded to the type. The scalar is of the type, but float for 8- and 16-bit floats.
using ScaleFunction = void (*)(void* target, const void* source, size_t count, const void* scalar);
// data[i] /= divisor, towards zero.
using DivideFunction = void (*)(void* data, size_t count, uint32_t divisor);

// Operator number of every sum whose contributions are multiplied first: the first after NCCL's own.
inline constexpr ncclRedOp_t kPreMulSum = ncclNumOps;

// How one call combines the ranks' contributions: each is scaled, all are reduced, the result is divided.
struct Reduction {
  ReduceFunction reduce = nullptr;  // null where nothing is reduced
  ScaleFunction scale = nullptr;    // null: contributions are taken as they are
  DivideFunction divide = nullptr;
  uint32_t divisor = 1;
  uint64_t scalar = 0;  // its bytes, as ScaleFunction reads them
};

// False if there is no such type or operator. kPreMulSum: `scalar` points to one element of the type.
bool makeReduction(ncclDataType_t type, ncclRedOp_t op, const void* scalar, uint32_t ranks, Reduction& out);
// Of single bytes with one source: a copy to several targets.
ReduceFunction copyFunction();

// One table per instruction set; filled by reduce_kernels.h.
struct ReduceTable {
  static constexpr int kOps = 4;  // ncclSum, ncclProd, ncclMax, ncclMin
  ReduceFunction reduce[ncclNumTypes][kOps];
  ScaleFunction scale[ncclNumTypes];
  DivideFunction divide[ncclNumTypes];                                // null for floats
  void (*widen[ncclNumTypes])(const void* element, void* scalarOut);  // an element as ScaleFunction reads it
  ReduceFunction copy;
};
extern const ReduceTable kReduceBase;
#if defined(__x86_64__)
extern const ReduceTable kReduceAvx2;
extern const ReduceTable kReduceAvx512;
#endif

}  // namespace ncclrun
