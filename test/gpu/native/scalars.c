#include "scalars.h"

#include <stdint.h>
#include <string.h>

const ScalarType scalars[scalarTypes] = {
    {ncclFloat16, "float16", 2, 5, 10},
    {ncclBfloat16, "bfloat16", 2, 8, 7},
    {ncclFloat32, "float32", 4, 8, 23},
    {ncclFloat64, "float64", 8, 11, 52},
    {ncclFloat8e4m3, "float8 e4m3", 1, 4, 3},
    {ncclFloat8e5m2, "float8 e5m2", 1, 5, 2},
    {ncclInt32, "int32", 4, 0, 0},
};

void writeScalar(const ScalarType* type, void* to, int number) {
  uint64_t bits = (uint64_t)number;
  if (type->exponentBits > 0 && number > 0) {
    int power = 0;
    while (number >> power > 1) power++;
    const uint64_t rest = (uint64_t)number - (1u << power);
    const int up = type->fractionBits - power;
    const uint64_t fraction = up >= 0 ? rest << up : rest >> -up;
    const uint64_t exponent = (uint64_t)(power + (1 << (type->exponentBits - 1)) - 1);
    bits = exponent << type->fractionBits | fraction;
  }
  memcpy(to, &bits, type->bytes); /* the lowest bytes come first */
}
