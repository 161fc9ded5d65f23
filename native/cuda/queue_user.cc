#include "cuda/queue_user.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace ncclrun::cuda {
namespace {

bool hasSingleQueue() {
  static const bool single = [] {
    const char* const queues = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    return queues != nullptr && std::strcmp(queues, "1") == 0;
  }();
  return single;
}

std::mutex usersMutex;
// Never freed: communicators may outlive static objects.
std::map<Device, uint32_t>& users() {
  static auto& all = *new std::map<Device, uint32_t>;
  return all;
}

}  // namespace

QueueUser::QueueUser(Device device) : device_(device) {
  std::lock_guard lock(usersMutex);
  users()[device_]++;
}

QueueUser::~QueueUser() {
  std::lock_guard lock(usersMutex);
  users()[device_]--;
}

bool QueueUser::holdsUpOthers() const {
  if (!hasSingleQueue()) return false;
  std::lock_guard lock(usersMutex);
  return users()[device_] > 1;
}

}  // namespace ncclrun::cuda
