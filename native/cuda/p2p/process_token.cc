#include "cuda/p2p/process_token.h"

#include <random>

namespace ncclrun::cuda {

uint64_t processToken() {
  static const uint64_t token = [] {
    std::random_device device;
    return uint64_t(device()) << 32 | device();
  }();
  return token;
}

}  // namespace ncclrun::cuda
