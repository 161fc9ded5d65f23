// Errors for invalid plans.
#pragma once
#include <cstdint>
#include <string>

#include "base/error.h"

namespace ncclrun {

// "the plan ..."
inline Status wrongPlan(const std::string& what) { return {ncclInvalidArgument, "the plan " + what}; }
inline std::string number(uint64_t value) { return std::to_string(value); }

}  // namespace ncclrun
