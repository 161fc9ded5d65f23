#include "agent/flight_recorder.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "agent/unique_id.h"
#include "base/variables.h"

namespace ncclrun {
namespace {

constexpr uint32_t kRecorderVersion = 3;

// The agent reads while we write: no field may tear.
template <typename Field>
void store(Field& field, Field value) {
  std::atomic_ref<Field>(field).store(value, std::memory_order_relaxed);
}

}  // namespace

Status FlightRecorder::open(int descriptor, int32_t jobRank) {
  std::lock_guard lock(mutex_);
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0 || facts.st_size < NCCLRUN_RECORDER_BYTES) {
    return {ncclInternalError, "the agent's flight recorder is too short"};
  }
  void* address = mmap(nullptr, NCCLRUN_RECORDER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED)
    return {ncclSystemError, formatSentence("flight recorder: mmap: %s", std::strerror(errno))};
  mapping_ = Mapping(address, NCCLRUN_RECORDER_BYTES);
  memory_ = static_cast<ncclrunRecorder*>(address);
  store(memory_->version, kRecorderVersion);
  store(memory_->pid, static_cast<uint32_t>(getpid()));
  store(memory_->jobRank, jobRank);
  std::atomic_ref(memory_->magic).store(NCCLRUN_RECORDER_MAGIC, std::memory_order_release);
  return {};
}

std::shared_ptr<const RecorderClaim> FlightRecorder::claim(const Membership& membership, const std::string& name) {
  std::lock_guard lock(mutex_);
  if (memory_ == nullptr || environmentVariable("NCCLRUN_RECORDER") == "off") return nullptr;
  const auto count = uint32_t(taken_.size());
  uint32_t index = next_;
  for (uint32_t tried = 0; tried < count && taken_[index]; tried++) index = (index + 1) % count;
  if (taken_[index]) {
    store(memory_->unlisted, memory_->unlisted + 1);
    return nullptr;
  }
  taken_[index] = true;
  next_ = (index + 1) % count;
  ncclrunRecorderCommunicator& one = memory_->communicators[index];
  store(one.firstSequence, uint64_t{0});
  std::atomic_thread_fence(std::memory_order_release);
  store(one.communicator, shortName(membership.id));
  store(one.epoch, membership.epoch);
  store(one.size, membership.size);
  store(one.rank, membership.rank);
  store(one.generation, one.generation + 1);
  store(memory_->clockOf[index], uint8_t{0});
  for (size_t i = 0; i < sizeof one.name; i++) {
    store(one.name[i], i < name.size() && i + 1 < sizeof one.name ? name[i] : '\0');
  }
  const uint64_t first = std::atomic_ref(memory_->lastSequence).load(std::memory_order_relaxed) + 1;
  std::atomic_ref(one.firstSequence).store(first, std::memory_order_release);
  return {new RecorderClaim{memory_, uint16_t(index)}, [this](const RecorderClaim* ended) {
            release(ended->index);
            delete ended;
          }};
}

void FlightRecorder::release(uint16_t index) {
  std::lock_guard lock(mutex_);
  taken_[index] = false;
}

}  // namespace ncclrun
