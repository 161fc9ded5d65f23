// What a reduction must give, computed in double precision (whole numbers: exactly) from all ranks' elements.
#pragma once
#include <string>
#include <vector>

#include "matrix/element.h"

namespace matrix {

inline constexpr ncclRedOp_t kPreMulSum = ncclNumOps;
struct Operator {
  ncclRedOp_t op;
  const char* name;
};
inline constexpr Operator kOperators[] = {{ncclSum, "sum"}, {ncclProd, "prod"}, {ncclMax, "max"},
                                          {ncclMin, "min"}, {ncclAvg, "avg"},   {kPreMulSum, "premulsum"}};

// The bits of rank `rank`'s scalar for a pre-multiplied sum: 1/2, 1, 2, or for whole numbers 3, 4, 5.
uint64_t scalarOf(const Type& type, int rank);

// Empty if `result` may be the reduction of `inputs` (bits, one per rank); else what it should be.
std::string judge(const Type& type, ncclRedOp_t op, const std::vector<uint64_t>& inputs, uint64_t result);

}  // namespace matrix
