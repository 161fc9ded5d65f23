#include "communicator/group.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "base/thread_owned.h"
#include "communicator/registry.h"

namespace ncclrun {

Group& Group::current() { return threadOwned<Group>(); }

// `run` gets what was queued.
template <typename Run>
ncclResult_t Group::endWith(const char* function, Run&& run) {
  if (depth_ == 0) return fail(ncclInvalidUsage, "%s: no ncclGroupStart of this thread is open", function);
  if (--depth_ > 0) return ncclSuccess;
  const Status failure = std::exchange(failure_, {});
  const std::vector<Joining> joining = std::exchange(joining_, {});
  std::vector<Queued> queued = std::exchange(queued_, {});
  if (!failure.ok()) {
    for (const Joining& one : joining) forget(one);
    return fail(failure);
  }
  const ncclResult_t joined = joinAll(joining);
  const ncclResult_t ran = run(std::move(queued));
  return ran == ncclSuccess || (ran == ncclInProgress && joined != ncclSuccess) ? joined : ran;
}

ncclResult_t Group::end() {
  return endWith("ncclGroupEnd", [](const std::vector<Queued>& queued) { return enqueueAll(queued); });
}

ncclResult_t Group::simulateEnd(ncclSimInfo_t* simulation) {
  constexpr const char* kName = "ncclGroupSimulateEnd";
  constexpr unsigned kMagic = 0x74685283;
  constexpr size_t kShortest = offsetof(ncclSimInfo_t, estimatedTime) + sizeof(float);
  if (depth_ > 0 && simulation == nullptr) noteFailure(fail(ncclInvalidArgument, "%s: simInfo is NULL", kName));
  if (depth_ > 0 && simulation != nullptr && (simulation->magic != kMagic || simulation->size < kShortest)) {
    noteFailure(fail(ncclInvalidArgument,
                     "%s: simInfo was not begun with NCCL_SIM_INFO_INITIALIZER: size %zu, magic 0x%x", kName,
                     simulation->size, simulation->magic));
  }
  return endWith(kName, [simulation](const std::vector<Queued>& queued) {
    const Status status = predictAll(queued, simulation->estimatedTime);
    return status.ok() ? ncclSuccess : fail(status);
  });
}

// A communicator's operations one after the other, the communicators side by side.
Status Group::predictAll(const std::vector<Queued>& queued, float& microseconds) {
  std::unordered_map<const Communicator*, double> sums;
  double longest = 0;
  for (const Queued& one : queued) {
    const DataPath* path = one.communicator->ready("ncclGroupSimulateEnd");
    if (path == nullptr) return {ncclInvalidUsage, lastError()};
    double time = 0;
    NCCLRUN_TRY(path->predict(one.operation, time));
    if (time == 0 && one.operation.collective != plan::Collective::barrier) {
      microseconds = NCCL_UNDEF_FLOAT;
      return {};
    }
    longest = std::max(longest, sums[one.communicator.get()] += time);
  }
  microseconds = static_cast<float>(longest);
  return {};
}

ncclResult_t Group::add(const std::shared_ptr<Communicator>& communicator, const Operation& operation,
                        ncclrunStream_t stream) {
  if (depth_ == 0) {
    Operation one = operation;
    return communicator->enqueue({&one, 1}, stream, nullptr);
  }
  queued_.push_back({communicator, stream, operation});
  return ncclSuccess;
}

ncclResult_t Group::join(std::shared_ptr<Communicator> communicator, ncclComm_t* out) {
  // At once: another thread may abort a set-up that this one waits for.
  if (!communicator->excluded()) *out = Registry::get().add(communicator);
  if (depth_ == 0) return joinAll({{std::move(communicator), out}});
  joining_.push_back({std::move(communicator), out});
  return ncclSuccess;
}

ncclResult_t Group::noteFailure(ncclResult_t code) {
  if (depth_ > 0 && failure_.ok()) failure_ = {code, lastError()};
  return code;
}

ncclResult_t Group::joinAll(const std::vector<Joining>& joining) {
  for (const Joining& one : joining)
    one.communicator->start(joining.size() == 1 && one.communicator->settings().blocking);
  Status first;
  bool underWay = false;
  for (const Joining& one : joining) {
    if (!one.communicator->settings().blocking) {
      underWay = underWay || !one.communicator->excluded();
      continue;
    }
    Status status = one.communicator->waitReady();
    if (status.ok()) continue;
    forget(one);
    if (first.ok()) first = std::move(status);
  }
  if (!first.ok()) return fail(first);
  return underWay ? ncclInProgress : ncclSuccess;
}

void Group::forget(const Joining& joining) {
  if (*joining.out != nullptr) Registry::get().remove(*joining.out);
  *joining.out = nullptr;
}

// By communicator, each with its calls in their order.
std::vector<Group::Batch> Group::batchesOf(const std::vector<Queued>& queued) {
  std::vector<Batch> batches;
  for (const Queued& one : queued) {
    const auto isIts = [&](const Batch& batch) { return batch.communicator == one.communicator; };
    auto found = std::find_if(batches.begin(), batches.end(), isIts);
    if (found == batches.end()) found = batches.insert(batches.end(), Batch{one.communicator, {}, {}});
    found->operations.push_back(one.operation);
    auto& streams = found->streams;
    if (std::find(streams.begin(), streams.end(), one.stream) == streams.end()) streams.push_back(one.stream);
  }
  return batches;
}

// The communicators come in an order that is the same on all ranks: where two share a stream, one waits for the other.
// Each is announced before any is queued: ranks of one thread could not answer each other one by one.
ncclResult_t Group::enqueueAll(const std::vector<Queued>& queued) {
  std::vector<Batch> batches = batchesOf(queued);
  if (batches.size() > 1) {
    std::stable_sort(batches.begin(), batches.end(), [](const Batch& one, const Batch& other) {
      return Communicator::precedes(*one.communicator, *other.communicator);
    });
    for (Batch& batch : batches)
      batch.announcement = batch.communicator->announce(batch.operations, batch.streams.front());
    for (const Batch& batch : batches) {
      if (batch.announcement != nullptr) batch.communicator->consent(*batch.announcement);
    }
  }
  ncclResult_t first = ncclSuccess;
  for (Batch& batch : batches) {
    const ncclResult_t result = enqueue(batch);
    if (first == ncclSuccess || first == ncclInProgress) first = result == ncclSuccess ? first : result;
  }
  return first;
}

// Operations on several streams run together, after what any of these has before and before what any of them has after.
ncclResult_t Group::enqueue(Batch& batch) {
  Communicator& communicator = *batch.communicator;
  const ncclrunStream_t stream = batch.streams.front();
  const auto order = [&](bool before) {
    for (size_t i = 1; i < batch.streams.size(); i++) {
      const ncclrunStream_t other = batch.streams[i];
      Status status = before ? communicator.order(stream, other) : communicator.order(other, stream);
      if (!status.ok()) return fail(status);
    }
    return ncclSuccess;
  };
  if (const ncclResult_t ordered = order(true); ordered != ncclSuccess) return ordered;
  const ncclResult_t result = communicator.enqueue(batch.operations, stream, std::move(batch.announcement));
  const ncclResult_t ordered = order(false);
  return result == ncclSuccess || (result == ncclInProgress && ordered != ncclSuccess) ? ordered : result;
}

}  // namespace ncclrun
