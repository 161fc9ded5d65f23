// A random token of this process: ranks with equal tokens share an address space and use pointers as they are.
#pragma once
#include <cstdint>

namespace ncclrun::cuda {

uint64_t processToken();

}  // namespace ncclrun::cuda
