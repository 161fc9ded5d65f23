#include "matrix/element.h"

#include <cmath>
#include <limits>

namespace matrix {
namespace {

int biasOf(const Type& type) { return (1 << (type.exponentBits - 1)) - 1; }
// e4m3 has no infinity and one NaN per sign: all ones.
bool hasInfinity(const Type& type) { return type.type != ncclFloat8e4m3; }

}  // namespace

double toDouble(const Type& type, uint64_t bits) {
  if (!type.floating) {
    if (!type.isSigned) return double(bits);
    const int unused = 64 - 8 * int(type.bytes);
    return double(int64_t(bits << unused) >> unused);
  }
  const uint64_t mantissa = bits & ((1ull << type.mantissaBits) - 1);
  const int exponentOnes = (1 << type.exponentBits) - 1;
  const int exponent = int(bits >> type.mantissaBits) & exponentOnes;
  const double sign = (bits >> (8 * type.bytes - 1)) != 0 ? -1 : 1;
  const bool allOnes = mantissa == (1ull << type.mantissaBits) - 1;
  if (exponent == exponentOnes && (hasInfinity(type) || allOnes)) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  const uint64_t significand = exponent == 0 ? mantissa : mantissa | 1ull << type.mantissaBits;
  const int power = (exponent == 0 ? 1 : exponent) - biasOf(type) - type.mantissaBits;
  return sign * std::ldexp(double(significand), power);
}

double largestFinite(const Type& type) {
  const uint64_t infinity = ((1ull << type.exponentBits) - 1) << type.mantissaBits;
  return toDouble(type, hasInfinity(type) ? infinity - 1 : infinity + (1ull << type.mantissaBits) - 2);
}

double relativeError(const Type& type) { return std::ldexp(1.0, -type.mantissaBits - 1); }
double smallestStep(const Type& type) { return std::ldexp(1.0, 1 - biasOf(type) - type.mantissaBits); }

uint64_t randomBits(const Type& type, Kind kind, uint64_t seed) {
  const uint64_t random = mix(seed);
  if (!type.floating) return type.bytes == 8 ? random : random & ((1ull << (8 * type.bytes)) - 1);
  const uint64_t sign = (random & 1) << (8 * type.bytes - 1);
  const uint64_t mantissaMask = (1ull << type.mantissaBits) - 1;
  const uint64_t mantissa = mix(random) & mantissaMask;
  const auto with = [&](uint64_t exponent, uint64_t low) { return sign | exponent << type.mantissaBits | low; };
  const auto bias = uint64_t(biasOf(type));
  if (kind == Kind::moderate) return with(bias - 2 + (random >> 8) % 4, mantissa);
  const uint64_t ones = (1ull << type.exponentBits) - 1;
  switch ((random >> 8) % 16) {
    case 0:
      return hasInfinity(type) ? with(ones, 0) : with(ones, mantissaMask);
    case 1:
      return with(ones, hasInfinity(type) ? mantissa | 1ull << (type.mantissaBits - 1) : mantissaMask);
    case 2:
    case 3:
    case 4:
      return with(0, mantissa);
    case 5:
      return with(bias, 0);
    default:
      return with(0, 0);
  }
}

}  // namespace matrix
