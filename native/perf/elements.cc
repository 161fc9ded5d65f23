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
constexpr Operator kOperators[] = {
    {"sum", Reduction::sum, ncclSum}, {"prod", Reduction::prod, ncclProd}, {"max", Reduction::max, ncclMax},
    {"min", Reduction::min, ncclMin}, {"avg", Reduction::avg, ncclAvg},    {"mulsum", Reduction::mulsum, ncclNumOps},
};

// So many ranks contribute a power of two other than 1 to a product: its exponent stays within the smallest type's.
constexpr int kFactors = 4;
constexpr int64_t kAverageUlps = 2;

template <typename Entry, size_t Count>
std::span<const Entry> named(const Entry (&entries)[Count], const char* what, const std::string& name) {
  if (name == "all") return entries;
  std::string known;
  for (const Entry& entry : entries) {
    if (name == entry.name) return {&entry, 1};
    known += entry.name + std::string(", ");
  }
  throw std::invalid_argument(std::string("unknown ") + what + " \"" + name + "\"; known: " + known + "all");
}

uint64_t scramble(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

struct Place {
  int rank;
  int part;
  size_t index;
};

uint64_t random(const DataRule& rule, const Place& at) {
  const uint64_t sender = static_cast<uint64_t>(at.rank) + (static_cast<uint64_t>(at.part) << 32);
  return scramble(scramble(rule.seed * 0x9e3779b97f4a7c15 + sender) + at.index);
}

int64_t factorOf(int rank) { return 1 + rank % 2; }

// The largest sum of magnitudes that `reduction` may meet, shared among the ranks.
int64_t share(const DataRule& rule, int64_t capacity) {
  switch (*rule.reduction) {
    case Reduction::sum:
    case Reduction::avg:
      return capacity / rule.ranks;
    case Reduction::mulsum:
      return capacity / rule.ranks / 2;
    default:
      return capacity;
  }
}

// A whole number or a power of two that the floating-point type holds exactly.
double floatValue(const DataRule& rule, const Place& at) {
  const uint64_t bits = random(rule, at);
  const int64_t capacity = int64_t{1} << rule.type.significandBits;
  const auto turn = static_cast<int64_t>((at.index + static_cast<size_t>(at.rank)) % static_cast<size_t>(rule.ranks));
  if (*rule.reduction == Reduction::prod) {
    const int exponent = turn < kFactors ? static_cast<int>(bits % 3) - 1 : 0;
    return std::ldexp((bits >> 32) % 2 == 0 ? 1.0 : -1.0, exponent);
  }
  const int64_t bound = share(rule, capacity);
  if (bound == 0) return 2 * turn < capacity ? 1.0 : 0.0;  // more ranks than the significand can count
  // What cancels in an average would leave nothing but the roundings of its terms.
  if (rule.reduction == Reduction::avg) return static_cast<double>(bits % static_cast<uint64_t>(bound + 1));
  return static_cast<double>(static_cast<int64_t>(bits % static_cast<uint64_t>(2 * bound + 1)) - bound);
}

// Any bits; for averages so small that the sum does not wrap.
uint64_t integerValue(const DataRule& rule, const Place& at) {
  const uint64_t bits = random(rule, at);
  if (rule.reduction != Reduction::avg) return bits;
  const int64_t max = std::max<int64_t>(int64_t{1} << (rule.type.bytes * 8 - 2), 2);
  const int64_t bound = max / rule.ranks;
  const bool isSigned = rule.type.type == ncclInt8 || rule.type.type == ncclInt32 || rule.type.type == ncclInt64;
  const uint64_t value = bits % static_cast<uint64_t>(bound + 1);
  return isSigned && bits >> 63 == 1 ? 0 - value : value;
}

// The bits of a value, rounded to the nearest that the type has; its magnitude must be in the type's range.
uint64_t encode(const ElementType& type, double value) {
  const int fractionBits = type.significandBits - 1;
  const int bias = (1 << (type.exponentBits - 1)) - 1;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (type.bytes * 8 - 1) : 0;
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);  // of a fraction in [0.5, 1)
  const int normal = std::max(exponent - 1, 1 - bias);
  // Rounding up to the next power of two carries into the exponent, as it should.
  const auto steps = static_cast<uint64_t>(std::nearbyint(std::ldexp(std::fabs(value), fractionBits - normal)));
  const uint64_t hidden = uint64_t{1} << fractionBits;
  return sign | (steps < hidden ? steps : (static_cast<uint64_t>(normal + bias) << fractionBits) + (steps - hidden));
}

double combine(Reduction reduction, double left, double right) {
  switch (reduction) {
    case Reduction::prod:
      return left * right;
    case Reduction::max:
      return std::max(left, right);
    case Reduction::min:
      return std::min(left, right);
    default:
      return left + right;
  }
}

// Modulo 2^64; the type's low bytes of the result are right for every width.
template <typename Integer>
uint64_t combineIntegers(Reduction reduction, uint64_t left, uint64_t right) {
  const auto one = static_cast<Integer>(left);
  const auto other = static_cast<Integer>(right);
  switch (reduction) {
    case Reduction::prod:
      return left * right;
    case Reduction::max:
      return static_cast<uint64_t>(std::max(one, other));
    case Reduction::min:
      return static_cast<uint64_t>(std::min(one, other));
    default:
      return left + right;
  }
}

// Of all ranks' integers at one place.
template <typename Integer>
uint64_t reduceIntegers(const DataRule& rule, int part, size_t index) {
  const auto value = [&](int rank) {
    const uint64_t bits = integerValue(rule, {rank, part, index});
    return rule.reduction == Reduction::mulsum ? bits * static_cast<uint64_t>(factorOf(rank)) : bits;
  };
  uint64_t result = value(0);
  for (int rank = 1; rank < rule.ranks; rank++) {
    result = combineIntegers<Integer>(*rule.reduction, result, value(rank));
  }
  if (rule.reduction != Reduction::avg) return result;
  return static_cast<uint64_t>(static_cast<Integer>(result) / static_cast<Integer>(rule.ranks));
}

uint64_t reduceIntegers(const DataRule& rule, int part, size_t index) {
  switch (rule.type.type) {
    case ncclInt8:
      return reduceIntegers<int8_t>(rule, part, index);
    case ncclUint8:
      return reduceIntegers<uint8_t>(rule, part, index);
    case ncclInt32:
      return reduceIntegers<int32_t>(rule, part, index);
    case ncclUint32:
      return reduceIntegers<uint32_t>(rule, part, index);
    case ncclInt64:
      return reduceIntegers<int64_t>(rule, part, index);
    default:
      return reduceIntegers<uint64_t>(rule, part, index);
  }
}

double reduceFloats(const DataRule& rule, int part, size_t index) {
  const auto value = [&](int rank) {
    const double given = floatValue(rule, {rank, part, index});
    return rule.reduction == Reduction::mulsum ? given * static_cast<double>(factorOf(rank)) : given;
  };
  double result = value(0);
  for (int rank = 1; rank < rule.ranks; rank++) result = combine(*rule.reduction, result, value(rank));
  return rule.reduction == Reduction::avg ? result / rule.ranks : result;
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

std::span<const ElementType> elementTypesNamed(const std::string& name) { return named(kTypes, "type", name); }
std::span<const Operator> operatorsNamed(const std::string& name) { return named(kOperators, "operator", name); }

std::vector<std::byte> factor(const ElementType& type, int rank) {
  const auto value = factorOf(rank);
  const uint64_t bits =
      type.significandBits == 0 ? static_cast<uint64_t>(value) : encode(type, static_cast<double>(value));
  const auto* bytes = reinterpret_cast<const std::byte*>(&bits);
  return {bytes, bytes + type.bytes};
}

std::vector<std::byte> contribution(const DataRule& rule, int rank, int part, size_t count) {
  return pattern(rule, std::min(count, kPeriod), [&](size_t index) {
    if (!rule.reduction.has_value()) return random(rule, {rank, part, index});
    return rule.type.significandBits == 0 ? integerValue(rule, {rank, part, index})
                                          : encode(rule.type, floatValue(rule, {rank, part, index}));
  });
}

std::vector<std::byte> reduction(const DataRule& rule, int part, size_t count) {
  return pattern(rule, std::min(count, kPeriod), [&](size_t index) {
    return rule.type.significandBits == 0 ? reduceIntegers(rule, part, index)
                                          : encode(rule.type, reduceFloats(rule, part, index));
  });
}

void spread(const std::vector<std::byte>& pattern, std::byte* target, size_t bytes) {
  for (size_t done = 0; done < bytes; done += pattern.size()) {
    std::memcpy(target + done, pattern.data(), std::min(pattern.size(), bytes - done));
  }
}

namespace {

// The place of a floating-point number among all of its type; both zeros have place 0.
int64_t ordinal(const ElementType& type, const std::byte* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, type.bytes);
  const uint64_t signBit = uint64_t{1} << (type.bytes * 8 - 1);
  const auto magnitude = static_cast<int64_t>(bits & (signBit - 1));
  return (bits & signBit) != 0 ? -magnitude : magnitude;
}

bool isRight(const DataRule& rule, const std::byte* expected, const std::byte* found) {
  if (std::memcmp(expected, found, rule.type.bytes) == 0) return true;
  if (rule.reduction != Reduction::avg || rule.type.significandBits == 0) return false;
  return std::abs(ordinal(rule.type, expected) - ordinal(rule.type, found)) <= kAverageUlps;
}

}  // namespace

int64_t countWrong(const DataRule& rule, const std::vector<std::byte>& pattern, const std::byte* memory, size_t bytes) {
  int64_t wrong = 0;
  for (size_t done = 0; done < bytes; done += pattern.size()) {
    const size_t part = std::min(pattern.size(), bytes - done);
    if (std::memcmp(memory + done, pattern.data(), part) == 0) continue;
    for (size_t at = 0; at < part; at += rule.type.bytes) {
      if (!isRight(rule, pattern.data() + at, memory + done + at)) wrong++;
    }
  }
  return wrong;
}
