#include "elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace {

constexpr ElementType kTypes[] = {
    {"int8", ncclInt8, 1, 0, 0},         {"uint8", ncclUint8, 1, 0, 0},       {"int32", ncclInt32, 4, 0, 0},
    {"uint32", ncclUint32, 4, 0, 0},     {"int64", ncclInt64, 8, 0, 0},       {"uint64", ncclUint64, 8, 0, 0},
    {"half", ncclFloat16, 2, 11, 5},     {"float", ncclFloat32, 4, 24, 8},    {"double", ncclFloat64, 8, 53, 11},
    {"bfloat16", ncclBfloat16, 2, 8, 8}, {"f8e4m3", ncclFloat8e4m3, 1, 4, 4}, {"f8e5m2", ncclFloat8e5m2, 1, 3, 5},
};
constexpr Operator kOperators[] = {{"sum", ncclSum}, {"prod", ncclProd}, {"max", ncclMax}, {"min", ncclMin}};

// So many ranks contribute a power of two other than 1 to a product: its exponent stays within the smallest type's.
constexpr int kFactors = 4;

template <typename Entry, size_t Count>
const Entry& named(const Entry (&entries)[Count], const char* what, const std::string& name) {
  std::string known;
  for (const Entry& entry : entries) {
    if (name == entry.name) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw std::invalid_argument(std::string("unknown ") + what + " \"" + name + "\"; known: " + known);
}

uint64_t scramble(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

uint64_t random(const DataRule& rule, int rank, size_t index) {
  return scramble(scramble(rule.seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(rank)) + index);
}

// A whole number or a power of two that the floating-point type holds exactly.
double floatValue(const DataRule& rule, int rank, size_t index) {
  const uint64_t bits = random(rule, rank, index);
  const int64_t capacity = int64_t{1} << rule.type.significandBits;
  const auto turn = static_cast<int64_t>((index + static_cast<size_t>(rank)) % static_cast<size_t>(rule.ranks));
  if (rule.op == ncclProd) {
    const int exponent = turn < kFactors ? static_cast<int>(bits % 3) - 1 : 0;
    return std::ldexp((bits >> 32) % 2 == 0 ? 1.0 : -1.0, exponent);
  }
  const int64_t bound = rule.op == ncclSum ? capacity / rule.ranks : capacity;
  if (bound == 0) return turn < capacity ? 1.0 : 0.0;  // more ranks than the significand can count
  return static_cast<double>(static_cast<int64_t>(bits % static_cast<uint64_t>(2 * bound + 1)) - bound);
}

// The bits of a value that the type holds exactly.
uint64_t encode(const ElementType& type, double value) {
  const int fractionBits = type.significandBits - 1;
  const int bias = (1 << (type.exponentBits - 1)) - 1;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (type.bytes * 8 - 1) : 0;
  if (value == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const auto significand = static_cast<uint64_t>(std::ldexp(fraction, type.significandBits));
  const uint64_t hidden = uint64_t{1} << fractionBits;
  return sign | static_cast<uint64_t>(exponent - 1 + bias) << fractionBits | (significand & (hidden - 1));
}

double combine(ncclRedOp_t op, double left, double right) {
  switch (op) {
    case ncclProd:
      return left * right;
    case ncclMax:
      return std::max(left, right);
    case ncclMin:
      return std::min(left, right);
    default:
      return left + right;
  }
}

// Modulo 2^64; the type's low bytes of the result are right for every width.
template <typename Integer>
uint64_t combineIntegers(ncclRedOp_t op, uint64_t left, uint64_t right) {
  const auto one = static_cast<Integer>(left);
  const auto other = static_cast<Integer>(right);
  switch (op) {
    case ncclProd:
      return left * right;
    case ncclMax:
      return static_cast<uint64_t>(std::max(one, other));
    case ncclMin:
      return static_cast<uint64_t>(std::min(one, other));
    default:
      return left + right;
  }
}

uint64_t combineIntegers(const ElementType& type, ncclRedOp_t op, uint64_t left, uint64_t right) {
  switch (type.type) {
    case ncclInt8:
      return combineIntegers<int8_t>(op, left, right);
    case ncclUint8:
      return combineIntegers<uint8_t>(op, left, right);
    case ncclInt32:
      return combineIntegers<int32_t>(op, left, right);
    case ncclUint32:
      return combineIntegers<uint32_t>(op, left, right);
    case ncclInt64:
      return combineIntegers<int64_t>(op, left, right);
    default:
      return combineIntegers<uint64_t>(op, left, right);
  }
}

template <typename ElementBits>
std::vector<std::byte> pattern(const DataRule& rule, size_t count, ElementBits&& elementBits) {
  std::vector<std::byte> bytes(count * rule.type.bytes);
  for (size_t index = 0; index < count; index++) {
    const uint64_t bits = elementBits(index);
    std::memcpy(bytes.data() + index * rule.type.bytes, &bits, rule.type.bytes);  // little-endian: the low bytes
  }
  return bytes;
}

}  // namespace

const ElementType& elementTypeNamed(const std::string& name) { return named(kTypes, "type", name); }
const Operator& operatorNamed(const std::string& name) { return named(kOperators, "operator", name); }

std::vector<std::byte> contribution(const DataRule& rule, int rank, size_t count) {
  return pattern(rule, std::min(count, kPeriod), [&](size_t index) {
    return rule.type.significandBits == 0 ? random(rule, rank, index)
                                          : encode(rule.type, floatValue(rule, rank, index));
  });
}

std::vector<std::byte> reduction(const DataRule& rule, size_t count) {
  return pattern(rule, std::min(count, kPeriod), [&](size_t index) {
    if (rule.type.significandBits == 0) {
      uint64_t result = random(rule, 0, index);
      for (int rank = 1; rank < rule.ranks; rank++) {
        result = combineIntegers(rule.type, rule.op, result, random(rule, rank, index));
      }
      return result;
    }
    double result = floatValue(rule, 0, index);
    for (int rank = 1; rank < rule.ranks; rank++) result = combine(rule.op, result, floatValue(rule, rank, index));
    return encode(rule.type, result);
  });
}

void spread(const std::vector<std::byte>& pattern, void* target, size_t bytes) {
  auto* to = static_cast<std::byte*>(target);
  for (size_t done = 0; done < bytes; done += pattern.size()) {
    std::memcpy(to + done, pattern.data(), std::min(pattern.size(), bytes - done));
  }
}

int64_t countWrong(const std::vector<std::byte>& pattern, const void* memory, size_t bytes, size_t elementBytes) {
  const auto* from = static_cast<const std::byte*>(memory);
  int64_t wrong = 0;
  for (size_t done = 0; done < bytes; done += pattern.size()) {
    const size_t part = std::min(pattern.size(), bytes - done);
    if (std::memcmp(from + done, pattern.data(), part) == 0) continue;
    for (size_t at = 0; at < part; at += elementBytes) {
      if (std::memcmp(from + done + at, pattern.data() + at, elementBytes) != 0) wrong++;
    }
  }
  return wrong;
}
