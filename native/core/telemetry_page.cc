#include "core/telemetry_page.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/unique_id.h"

namespace ncclrun {
namespace {

constexpr uint32_t kVersion = 2;
constexpr uint32_t kNobody = 0xffffffff;

// The agent reads while we write: no field may tear, and `state` goes last.
template <typename Field>
void put(Field& field, Field value) {
  std::atomic_ref<Field>(field).store(value, std::memory_order_relaxed);
}

}  // namespace

Status TelemetryPage::open(int descriptor, int32_t jobRank) {
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0 || facts.st_size < NCCLRUN_TELEMETRY_BYTES) {
    return {ncclInternalError, "the agent's telemetry page is too short"};
  }
  void* address = mmap(nullptr, NCCLRUN_TELEMETRY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return {ncclSystemError, formatSentence("telemetry page: mmap: %s", std::strerror(errno))};
  std::lock_guard lock(mutex_);
  mapping_ = Mapping(address, NCCLRUN_TELEMETRY_BYTES);
  auto& page = *static_cast<ncclrunTelemetryPage*>(address);
  put(page.version, kVersion);
  put(page.pid, static_cast<uint32_t>(getpid()));
  put(page.jobRank, jobRank);
  std::atomic_ref(page.magic).store(NCCLRUN_TELEMETRY_MAGIC, std::memory_order_release);
  return {};
}

ncclrunTelemetrySlot* TelemetryPage::claim(const Membership& membership) {
  std::lock_guard lock(mutex_);
  if (mapping_.address() == nullptr) return nullptr;
  for (ncclrunTelemetrySlot& slot : static_cast<ncclrunTelemetryPage*>(mapping_.address())->slots) {
    if (std::atomic_ref(slot.state).load(std::memory_order_relaxed) != ncclrunStateFree) continue;
    put(slot.communicator, shortName(membership.id));
    put(slot.rank, membership.rank);
    put(slot.size, membership.size);
    put(slot.epoch, membership.epoch);
    put(slot.waitingFor, kNobody);
    put(slot.lostPeer, uint32_t{0});
    for (uint64_t* counter : {&slot.operation, &slot.completed, &slot.bytes, &slot.lastProgressNs, &slot.operationHash,
                              &slot.startedNs, &slot.hashed}) {
      put(*counter, uint64_t{0});
    }
    std::atomic_ref(slot.state).store(uint32_t{ncclrunStateIdle}, std::memory_order_release);
    return &slot;
  }
  return nullptr;
}

void TelemetryPage::release(ncclrunTelemetrySlot* slot) {
  if (slot == nullptr) return;
  std::lock_guard lock(mutex_);
  std::atomic_ref(slot->state).store(uint32_t{ncclrunStateFree}, std::memory_order_release);
}

}  // namespace ncclrun
