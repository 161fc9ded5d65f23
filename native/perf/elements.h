// Element types and operators, and test data on which every order of reducing gives the same bits.
//
// Sums of floating-point elements are of small whole numbers whose partial sums all fit the significand; products are
// of powers of two whose exponents fit; integers wrap. So a result is right or wrong, with no tolerance. Averages of
// floating-point elements alone, none of them negative, may be two units in the last place off: the terms are divided
// and rounded before they are summed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nccl.h"

struct ElementType {
  const char* name;
  ncclDataType_t type;
  size_t bytes;
  int significandBits;  // of floating point, the leading one included; 0 for integers
  int exponentBits;
};

// What nccl-tests can be asked for; mulsum is a sum whose elements each rank multiplies by a factor of its own.
enum class Reduction { sum, prod, max, min, avg, mulsum };

struct Operator {
  const char* name;
  Reduction reduction;
  ncclRedOp_t op;  // ncclNumOps: has to be made first
};

// The one of this name, or every one for "all". Throw std::invalid_argument for a name that does not exist.
std::span<const ElementType> elementTypesNamed(const std::string& name);
std::span<const Operator> operatorsNamed(const std::string& name);

// The data of one measurement repeats after this many elements: a prime, so that what is misplaced by whole chunks is
// seen.
inline constexpr size_t kPeriod = 65521;

struct DataRule {
  const ElementType& type;
  std::optional<Reduction> reduction;  // none: the elements are only moved, and may be any bits
  int ranks;
  uint64_t seed;  // another one per measurement, so that an old result is no right result
};

// What mulsum multiplies the elements of `rank` by, in memory's form: 1 or 2.
std::vector<std::byte> factor(const ElementType& type, int rank);

// The first `count` (at most kPeriod) elements of part `part` of what `rank` sends, and the same reduced over all
// ranks; in memory's form. A part is what goes to one rank; who sends the same to all has part 0 alone.
std::vector<std::byte> contribution(const DataRule& rule, int rank, int part, size_t count);
std::vector<std::byte> reduction(const DataRule& rule, int part, size_t count);

// Repeats `pattern` over `bytes` of memory; how many elements there differ from such a repetition: by a bit, or where
// floating-point averages are due by more than two units in the last place.
void spread(const std::vector<std::byte>& pattern, std::byte* target, size_t bytes);
int64_t countWrong(const DataRule& rule, const std::vector<std::byte>& pattern, const std::byte* memory, size_t bytes);
