// Elements of every type: made from random bits, read as double. Nothing here is the engine's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "nccl.h"

namespace matrix {

struct Type {
  ncclDataType_t type;
  const char* name;
  size_t bytes;
  bool floating;
  bool isSigned;
  int exponentBits;  // of a float
  int mantissaBits;
};

inline constexpr Type kTypes[] = {
    {ncclInt8, "int8", 1, false, true, 0, 0},        {ncclUint8, "uint8", 1, false, false, 0, 0},
    {ncclInt32, "int32", 4, false, true, 0, 0},      {ncclUint32, "uint32", 4, false, false, 0, 0},
    {ncclInt64, "int64", 8, false, true, 0, 0},      {ncclUint64, "uint64", 8, false, false, 0, 0},
    {ncclFloat16, "float16", 2, true, true, 5, 10},  {ncclFloat32, "float32", 4, true, true, 8, 23},
    {ncclFloat64, "float64", 8, true, true, 11, 52}, {ncclBfloat16, "bfloat16", 2, true, true, 8, 7},
    {ncclFloat8e4m3, "e4m3", 1, true, true, 4, 3},   {ncclFloat8e5m2, "e5m2", 1, true, true, 5, 2},
};

inline uint64_t mix(uint64_t x) {
  x = (x ^ x >> 31) * 0x7fb5d329728ea185;
  x = (x ^ x >> 27) * 0x81dadef4bc2dd44d;
  return x ^ x >> 33;
}

// Little-endian bits of element i.
inline uint64_t bitsAt(const Type& type, const void* data, size_t i) {
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(data) + i * type.bytes, type.bytes);
  return bits;
}

double toDouble(const Type& type, uint64_t bits);
double largestFinite(const Type& type);
// Of one rounding, relative to the value; the smallest difference of two subnormals.
double relativeError(const Type& type);
double smallestStep(const Type& type);

enum class Kind { moderate, special };
// Moderate: any integer; a float whose magnitude is between 1/4 and 4. Special: a float that is a zero, a subnormal, an
// infinity or a NaN with a payload, or 1.
uint64_t randomBits(const Type& type, Kind kind, uint64_t seed);

}  // namespace matrix
