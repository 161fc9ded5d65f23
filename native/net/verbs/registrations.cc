#include "net/verbs/registrations.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "net/verbs/tuning.h"

namespace ncclrun::net {
namespace {

constexpr int kAccess = verbs::access::kLocalWrite | verbs::access::kRemoteWrite | verbs::access::kRemoteRead;

}  // namespace

std::string lockedMemoryBehind(int error) {
  if (error != ENOMEM && error != EAGAIN) return "";
  rlimit locked{};
  if (getrlimit(RLIMIT_MEMLOCK, &locked) != 0 || locked.rlim_cur == RLIM_INFINITY) return "";
  return ": this process may lock " + std::to_string(locked.rlim_cur) +
         " bytes of memory (memlock); raise it with ulimit -l unlimited, in a container with --ulimit memlock=-1, in a "
         "service of systemd with LimitMEMLOCK=infinity";
}

Registrations::~Registrations() {
  for (const RegisteredRegion& one : regions_) library_.deregMr(one.region);
}

// All that we do with it is ordered by completions, so the card may write as it likes within (relaxed ordering).
verbs::MemoryRegion* Registrations::make(const Region& region, uintptr_t begin, uintptr_t end) const {
  auto* const address = reinterpret_cast<void*>(begin);
  if (region.dmaBufDescriptor >= 0) {
    if (library_.regDmaBufMr == nullptr) {
      errno = EOPNOTSUPP;
      return nullptr;
    }
    return library_.regDmaBufMr(&domain_, region.dmaBufOffset, end - begin, begin, region.dmaBufDescriptor, kAccess);
  }
  static const bool wishesRelaxed = verbsTuningOfVariables().relaxesOrdering;
  const bool isRelaxed = wishesRelaxed && library_.regMrIova2 != nullptr;
  if (isRelaxed) {
    const auto access = unsigned(kAccess | verbs::access::kRelaxedOrdering);
    if (auto* const made = library_.regMrIova2(&domain_, address, end - begin, begin, access)) return made;
  }
  return library_.regMr(&domain_, address, end - begin, kAccess);
}

Status Registrations::take(const Region& region, RegisteredRegion*& out) {
  static const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  auto begin = reinterpret_cast<uintptr_t>(region.address);
  uintptr_t end = begin + region.bytes;
  if (region.type == MemoryType::host) {
    begin = begin / page * page;
    end = (end + page - 1) / page * page;
  }
  std::lock_guard lock(mutex_);
  for (RegisteredRegion& one : regions_) {
    if (one.type != region.type || one.begin > begin || one.end < end) continue;
    one.users++;
    out = &one;
    return {};
  }
  errno = 0;
  verbs::MemoryRegion* const made = make(region, begin, end);
  if (made == nullptr) {
    const int error = errno;
    return {ncclSystemError,
            std::to_string(end - begin) + " bytes of " + (region.type == MemoryType::host ? "memory" : "GPU memory") +
                " cannot be registered with " + card_ + ": " + std::strerror(error) + lockedMemoryBehind(error)};
  }
  out = &regions_.emplace_back(RegisteredRegion{begin, end, region.type, made, 1});
  return {};
}

void Registrations::release(RegisteredRegion* region) {
  std::lock_guard lock(mutex_);
  if (--region->users > 0) return;
  library_.deregMr(region->region);
  regions_.remove_if([region](const RegisteredRegion& one) { return &one == region; });
}

}  // namespace ncclrun::net
