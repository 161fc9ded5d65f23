#include "agent/telemetry_page.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "agent/unique_id.h"

namespace ncclrun {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint32_t kNobody = 0xffffffff;

// The agent reads while we write: no field may tear, and `state` goes last.
template <typename Field>
void put(Field& field, Field value) {
  std::atomic_ref<Field>(field).store(value, std::memory_order_relaxed);
}

}  // namespace

bool TelemetryPages::expect() {
  std::lock_guard lock(mutex_);
  expected_++;
  if (claimed_ + expected_ <= (pages_.size() + requested_) * NCCLRUN_TELEMETRY_SLOTS) return false;
  requested_++;
  return true;
}

void TelemetryPages::arrived() {
  std::lock_guard lock(mutex_);
  expected_--;
}

Status TelemetryPages::add(int descriptor, int32_t jobRank) {
  std::lock_guard lock(mutex_);
  if (requested_ > 0) requested_--;
  if (descriptor < 0) return {};
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0 || facts.st_size < NCCLRUN_TELEMETRY_BYTES) {
    return {ncclInternalError, "the agent's telemetry page is too short"};
  }
  void* address = mmap(nullptr, NCCLRUN_TELEMETRY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return {ncclSystemError, formatSentence("telemetry page: mmap: %s", std::strerror(errno))};
  pages_.emplace_back(address, NCCLRUN_TELEMETRY_BYTES);
  auto& page = *static_cast<ncclrunTelemetryPage*>(address);
  put(page.version, kVersion);
  put(page.pid, static_cast<uint32_t>(getpid()));
  put(page.jobRank, jobRank);
  std::atomic_ref(page.magic).store(NCCLRUN_TELEMETRY_MAGIC, std::memory_order_release);
  return {};
}

ncclrunTelemetrySlot* TelemetryPages::unused() {
  for (const Mapping& page : pages_) {
    for (ncclrunTelemetrySlot& slot : static_cast<ncclrunTelemetryPage*>(page.address())->slots) {
      if (std::atomic_ref(slot.state).load(std::memory_order_relaxed) == ncclrunStateFree) return &slot;
    }
  }
  return nullptr;
}

std::shared_ptr<ncclrunTelemetrySlot> TelemetryPages::claim(const Membership& membership) {
  std::lock_guard lock(mutex_);
  ncclrunTelemetrySlot* const slot = unused();
  if (slot == nullptr) return nullptr;
  put(slot->communicator, shortName(membership.id));
  put(slot->rank, membership.rank);
  put(slot->size, membership.size);
  put(slot->epoch, membership.epoch);
  put(slot->waitingFor, kNobody);
  put(slot->lostPeer, uint32_t{0});
  put(slot->left, uint32_t{0});
  for (uint64_t* counter : {&slot->operation, &slot->completed, &slot->bytes, &slot->lastProgressNs,
                            &slot->operationHash, &slot->startedNs, &slot->hashed, &slot->hashedBytes}) {
    put(*counter, uint64_t{0});
  }
  std::atomic_ref(slot->state).store(uint32_t{ncclrunStateIdle}, std::memory_order_release);
  claimed_++;
  return {slot, [this](ncclrunTelemetrySlot* ended) { release(ended); }};
}

void TelemetryPages::release(ncclrunTelemetrySlot* slot) {
  std::lock_guard lock(mutex_);
  claimed_--;
  std::atomic_ref(slot->state).store(uint32_t{ncclrunStateFree}, std::memory_order_release);
}

}  // namespace ncclrun
