// Element types and operators, and test data on which every order of reducing gives the same bits.
//
// Sums of floating-point elements are of small whole numbers whose partial sums all fit the significand; products are
// of powers of two whose exponents fit; integers wrap. So a result is right or wrong, with no tolerance.
#pragma once
#include <cstddef>
#include <cstdint>
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

struct Operator {
  const char* name;
  ncclRedOp_t op;
};

// Throw std::invalid_argument for a name that does not exist.
const ElementType& elementTypeNamed(const std::string& name);
const Operator& operatorNamed(const std::string& name);

// The data of one measurement repeats after this many elements: a prime, so that what is misplaced by whole chunks is
// seen.
inline constexpr size_t kPeriod = 65521;

struct DataRule {
  const ElementType& type;
  ncclRedOp_t op;
  int ranks;
  uint64_t seed;  // another one per measurement, so that an old result is no right result
};

// The first `count` (at most kPeriod) elements that `rank` contributes, and the same reduced over all ranks; in
// memory's form.
std::vector<std::byte> contribution(const DataRule& rule, int rank, size_t count);
std::vector<std::byte> reduction(const DataRule& rule, size_t count);

// Repeats `pattern` over `bytes` of memory; how many elements there differ from such a repetition.
void spread(const std::vector<std::byte>& pattern, void* target, size_t bytes);
int64_t countWrong(const std::vector<std::byte>& pattern, const void* memory, size_t bytes, size_t elementBytes);
