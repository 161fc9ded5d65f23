// What the members of a group contribute, and what all of it is together: reduced one after the other, in rank order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "nccl.h"

namespace ncclrun::test {

inline constexpr ncclDataType_t kAllTypes[] = {ncclInt8,    ncclUint8,    ncclInt32,      ncclUint32,
                                               ncclInt64,   ncclUint64,   ncclFloat16,    ncclFloat32,
                                               ncclFloat64, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2};
inline constexpr ncclRedOp_t kAllOperators[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

// What member `rank` contributes as element i: floats whose sums depend on the order.
template <typename T>
T element(uint32_t rank, size_t i) {
  const auto mixed = uint32_t((i + 1) * 2654435761u) ^ (rank * 40503u);
  if constexpr (std::is_floating_point_v<T>) return T(int32_t(mixed)) / T(1 + (mixed & 1023));
  return T(mixed);
}

template <typename T>
T reduced(T a, T b, ncclRedOp_t op) {
  if (op == ncclMax) return std::max(a, b);
  if (op == ncclMin) return std::min(a, b);
  if constexpr (std::is_floating_point_v<T>) return op == ncclProd ? a * b : a + b;
  return op == ncclProd ? T(uint64_t(a) * uint64_t(b)) : T(uint64_t(a) + uint64_t(b));
}

template <typename T>
void fillContribution(char* to, uint32_t rank, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const T value = element<T>(rank, i);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

// Averages: floats are multiplied by the rounded fraction first, sums of integers are divided.
template <typename T>
std::vector<char> serial(uint32_t members, size_t count, ncclRedOp_t op) {
  std::vector<char> result(count * sizeof(T));
  const bool isScaled = op == ncclAvg && std::is_floating_point_v<T>;
  const T factor = isScaled ? T(1.0 / members) : T(1);
  for (size_t i = 0; i < count; i++) {
    T value = isScaled ? element<T>(0, i) * factor : element<T>(0, i);
    for (uint32_t rank = 1; rank < members; rank++)
      value = reduced<T>(value, isScaled ? element<T>(rank, i) * factor : element<T>(rank, i), op);
    if constexpr (std::is_signed_v<T>) {
      if (op == ncclAvg && !isScaled) value = T(int64_t(value) / int64_t(members));
    } else {
      if (op == ncclAvg) value = T(value / members);
    }
    std::memcpy(result.data() + i * sizeof(T), &value, sizeof(T));
  }
  return result;
}

// Of any type of NCCL's.
void fillContribution(ncclDataType_t type, char* to, uint32_t rank, size_t count);
std::vector<char> serial(ncclDataType_t type, uint32_t members, size_t count, ncclRedOp_t op);
// Reduced in a tree: at every level, from the leaves to the root, so many consecutive parts make one part of the next.
using Levels = std::vector<std::vector<size_t>>;
std::vector<char> serialInTree(ncclDataType_t type, const Levels& levels, size_t count, ncclRedOp_t op);

}  // namespace ncclrun::test
