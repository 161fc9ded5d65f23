#include "plan/segment.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

namespace ncclrun {

Segment::~Segment() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

Status Segment::map(int fd, const PlanView& plan) {
  const uint64_t wanted = plan.header().segmentBytes;
  struct stat facts {};
  if (fstat(fd, &facts) != 0) {
    return {ncclSystemError, "the host segment (fd " + std::to_string(fd) + ") cannot be used: " + strerror(errno)};
  }
  if (facts.st_size < 0 || uint64_t(facts.st_size) < wanted) {
    return {ncclInvalidArgument, "the host segment has " + std::to_string(facts.st_size) + " bytes, the plan needs " +
                                     std::to_string(wanted)};
  }
  void* base = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    return {ncclSystemError, "cannot map the host segment of " + std::to_string(wanted) + " bytes: " + strerror(errno)};
  }
  base_ = static_cast<std::byte*>(base);
  bytes_ = wanted;
  plan_ = &plan;
  return {};
}

void Segment::leave(uint32_t local, uint64_t collectives) const {
  doorbell(local).left.store(collectives + 1, std::memory_order_seq_cst);
  ringAll();
}

void Segment::leaveAborted(uint32_t local) const {
  uint64_t there = 0;
  if (doorbell(local).left.compare_exchange_strong(there, kAborted, std::memory_order_seq_cst)) ringAll();
}

void Segment::ringAll() const {
  for (uint32_t one = 0; one < plan_->header().localRanks; one++) ring(doorbell(one));
}

bool futexWait(std::atomic<uint32_t>& word, uint32_t seen, uint64_t nanoseconds) {
  const timespec limit{time_t(nanoseconds / 1'000'000'000), long(nanoseconds % 1'000'000'000)};
  return syscall(SYS_futex, &word, FUTEX_WAIT, seen, nanoseconds == kForEver ? nullptr : &limit, nullptr, 0) == 0 ||
         errno != ETIMEDOUT;
}

void futexWakeAll(std::atomic<uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace ncclrun
