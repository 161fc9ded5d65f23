#include "cuda/gpu_recorder.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "base/debug.h"
#include "plan/plan_format.h"

namespace ncclrun::cuda {
namespace {

static_assert(kRecorderEntries == NCCLRUN_RECORDER_ENTRIES);
static_assert(kRecordedSendRecv == uint64_t(plan::Collective::sendRecv) && kRecordedSendFlag == ncclrunRecordSend);
static_assert(offsetof(EntryWords, started) == offsetof(ncclrunRecorderEntry, startedNs));
static_assert(offsetof(EntryWords, ended) == offsetof(ncclrunRecorderEntry, endedNs));
static_assert(offsetof(EntryWords, operationAndPeer) == offsetof(ncclrunRecorderEntry, operation));
static_assert(offsetof(EntryWords, lastPeerAndCommunicator) == offsetof(ncclrunRecorderEntry, lastPeer));
static_assert(offsetof(EntryWords, call) == offsetof(ncclrunRecorderEntry, flags));

template <class T>
void store(T& field, T value) {
  std::atomic_ref<T>(field).store(value, std::memory_order_relaxed);
}

}  // namespace

GpuRecorder* GpuRecorder::of(const Gpu& gpu, ncclrunRecorder* memory, Stream stream) {
  if (memory == nullptr) return nullptr;
  static std::mutex mutex;
  // Kernels may write until the process ends. Null: it could not be opened.
  static auto& all = *new std::map<std::pair<ncclrunRecorder*, int>, std::unique_ptr<GpuRecorder>>;
  std::lock_guard lock(mutex);
  const auto found = all.find({memory, gpu.device});
  if (found != all.end()) return found->second.get();
  const auto index = uint32_t(std::count_if(
      all.begin(), all.end(), [&](const auto& one) { return one.first.first == memory && one.second != nullptr; }));
  std::unique_ptr<GpuRecorder> made;
  if (index < NCCLRUN_RECORDER_GPUS) {
    made.reset(new GpuRecorder(memory, index));
    if (Status without = made->open(gpu, stream); !without.ok()) {
      logInfo(formatSentence("GPU %d does not record when operations begin and end: %s", gpu.device,
                             without.sentence.c_str()),
              Subsystem::init);
      made.reset();
    }
  }
  return (all[{memory, gpu.device}] = std::move(made)).get();
}

Status GpuRecorder::open(const Gpu& gpu, Stream stream) {
  NCCLRUN_TRY(pinnedForever(gpu, memory_->entries, entries_, sizeof memory_->entries));
  NCCLRUN_TRY(pinnedForever(gpu, memory_->replays[index_], replays_, sizeof memory_->replays[index_]));
  NCCLRUN_TRY(taken_.allocate(gpu, sizeof(uint64_t), stream));
  return statusOf(driver().streamSynchronize(stream), "cuStreamSynchronize");
}

void GpuRecorder::adopt(uint16_t communicator) { store(memory_->clockOf[communicator], uint8_t(index_ + 1)); }

void GpuRecorder::readClock(uint64_t beforeNs, uint64_t gpuNs, uint64_t afterNs) {
  std::lock_guard lock(mutex_);
  ncclrunRecorderClock& clock = memory_->clocks[index_];
  const uint64_t sequence = clock.sequence;
  const uint64_t nowNs = beforeNs + (afterNs - beforeNs) / 2;
  const uint64_t offset = nowNs - gpuNs;
  const auto error = uint32_t(std::min<uint64_t>((afterNs - beforeNs + 1) / 2, UINT32_MAX));
  store(clock.sequence, sequence + 1);
  std::atomic_thread_fence(std::memory_order_release);
  if (sequence == 0) {
    store(clock.firstNs, nowNs);
    store(clock.firstOffset, offset);
    store(clock.firstErrorNs, error);
  }
  store(clock.lastNs, nowNs);
  store(clock.lastOffset, offset);
  store(clock.lastErrorNs, error);
  std::atomic_ref(clock.sequence).store(sequence + 2, std::memory_order_release);
}

uint64_t GpuRecorder::lastReadNs() {
  return std::atomic_ref(memory_->clocks[index_].lastNs).load(std::memory_order_relaxed);
}

RecorderAccess GpuRecorder::access(bool captured, uint32_t* counts, uint16_t communicator) const {
  RecorderAccess access{};
  access.entries = reinterpret_cast<EntryWords*>(captured ? replays_ : entries_);
  access.taken = captured ? reinterpret_cast<uint64_t*>(taken_.pointer()) : nullptr;
  access.counts = counts;
  access.communicator = communicator;
  access.generation = memory_->communicators[communicator].generation;
  return access;
}

}  // namespace ncclrun::cuda
