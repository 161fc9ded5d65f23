#include "matrix/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace matrix {
namespace {

std::string text(double value) {
  char out[64];
  snprintf(out, sizeof out, "%.17g", value);
  return out;
}

uint64_t masked(const Type& type, uint64_t bits) {
  return type.bytes == 8 ? bits : bits & ((1ull << (8 * type.bytes)) - 1);
}

int64_t extended(const Type& type, uint64_t bits) {
  const int unused = 64 - 8 * int(type.bytes);
  return int64_t(bits << unused) >> unused;
}

bool less(const Type& type, uint64_t a, uint64_t b) {
  return type.isSigned ? extended(type, a) < extended(type, b) : a < b;
}

uint64_t wholeNumber(const Type& type, ncclRedOp_t op, const std::vector<uint64_t>& inputs) {
  uint64_t value = op == ncclProd ? 1 : 0;
  switch (int(op)) {
    case ncclProd:
      for (const uint64_t input : inputs) value *= input;
      break;
    case ncclMax:
      return *std::max_element(inputs.begin(), inputs.end(), [&](uint64_t a, uint64_t b) { return less(type, a, b); });
    case ncclMin:
      return *std::min_element(inputs.begin(), inputs.end(), [&](uint64_t a, uint64_t b) { return less(type, a, b); });
    case int(kPreMulSum):
      for (size_t rank = 0; rank < inputs.size(); rank++) value += inputs[rank] * scalarOf(type, int(rank));
      break;
    default:
      for (const uint64_t input : inputs) value += input;
  }
  value = masked(type, value);
  if (op != ncclAvg) return value;
  return masked(type, type.isSigned ? uint64_t(extended(type, value) / int64_t(inputs.size())) : value / inputs.size());
}

// The exact value, and how far roundings may lead away from it.
struct Expected {
  double value;
  double tolerance;
};

Expected sum(const Type& type, ncclRedOp_t op, const std::vector<uint64_t>& inputs) {
  double value = -0.0, magnitude = 0;
  for (size_t rank = 0; rank < inputs.size(); rank++) {
    double input = toDouble(type, inputs[rank]);
    if (op == ncclAvg) input /= double(inputs.size());
    if (op == kPreMulSum) input *= toDouble(type, scalarOf(type, int(rank)));
    value += input;
    magnitude += std::fabs(input);
  }
  // A contribution is rounded when it is scaled, a sum at most each time a rank adds; double rounds here too.
  const double roundings = 2 * double(inputs.size()) + 1;
  const bool exact = inputs.size() == 1 && op != kPreMulSum;
  return {value, exact ? 0 : roundings * std::max(magnitude * relativeError(type), smallestStep(type) / 2)};
}

Expected product(const Type& type, const std::vector<uint64_t>& inputs) {
  double value = 1;
  for (const uint64_t bits : inputs) value *= toDouble(type, bits);
  const double roundings = 2 * double(inputs.size());
  // A subnormal on the way may lose all: then what it is multiplied with (at most 4 each) decides.
  const double lost = std::pow(4.0, double(inputs.size())) * smallestStep(type);
  return {value, inputs.size() == 1 ? 0 : roundings * (std::fabs(value) * relativeError(type) + lost)};
}

size_t subnormals(const Type& type, const std::vector<uint64_t>& inputs) {
  const double minNormal = smallestStep(type) * std::ldexp(1.0, type.mantissaBits);
  return size_t(std::count_if(inputs.begin(), inputs.end(), [&](uint64_t bits) {
    const double value = std::fabs(toDouble(type, bits));
    return value > 0 && value < minNormal;
  }));
}

// NaNs count only where there is nothing else; -0 is less than +0.
Expected extreme(const Type& type, bool greatest, const std::vector<uint64_t>& inputs) {
  double found = std::numeric_limits<double>::quiet_NaN();
  for (const uint64_t bits : inputs) {
    const double value = toDouble(type, bits);
    if (std::isnan(value)) continue;
    const bool further = value == found ? std::signbit(found) == greatest : greatest ? value > found : value < found;
    if (std::isnan(found) || further) found = value;
  }
  return {found, 0};
}

}  // namespace

uint64_t scalarOf(const Type& type, int rank) {
  if (!type.floating) return uint64_t(rank % 3 + 3);
  const auto bias = (1ull << (type.exponentBits - 1)) - 1;
  return (bias - 1 + uint64_t(rank % 3)) << type.mantissaBits;
}

std::string judge(const Type& type, ncclRedOp_t op, const std::vector<uint64_t>& inputs, uint64_t result) {
  if (!type.floating) {
    const uint64_t expected = wholeNumber(type, op, inputs);
    return result == expected ? "" : std::to_string(expected) + ", not " + std::to_string(result);
  }
  const bool isExtreme = op == ncclMax || op == ncclMin;
  const Expected expected = isExtreme        ? extreme(type, op == ncclMax, inputs)
                            : op == ncclProd ? product(type, inputs)
                                             : sum(type, op, inputs);
  const double value = toDouble(type, result);
  // An infinity times a product that two subnormals brought to zero is no number: the order decides.
  if (op == ncclProd && !std::isfinite(expected.value) && subnormals(type, inputs) > 1 && !std::isfinite(value))
    return "";
  const std::string wrong = text(expected.value) + " within " + text(expected.tolerance) + ", not " + text(value);
  if (std::isnan(expected.value)) return std::isnan(value) ? "" : wrong;
  if (std::isinf(expected.value)) return value == expected.value ? "" : wrong;
  // 8-bit floats end at their largest value, the others in infinity.
  const double limit = largestFinite(type);
  if (std::fabs(expected.value) + expected.tolerance > limit) {
    const double min = std::min(std::fabs(expected.value) - expected.tolerance, limit);
    return std::fabs(value) >= min && !std::isnan(value) ? "" : wrong;
  }
  const bool zeros = expected.value == 0 && value == 0 && isExtreme;
  if (zeros && std::signbit(value) != std::signbit(expected.value)) return wrong + " (sign of zero)";
  return std::fabs(value - expected.value) <= expected.tolerance ? "" : wrong;
}

}  // namespace matrix
