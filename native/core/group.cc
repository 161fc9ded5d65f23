#include "core/group.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "core/registry.h"
#include "core/thread_owned.h"

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
  return endWith("ncclGroupEnd", [](std::vector<Queued> queued) { return enqueueAll(std::move(queued)); });
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
    if (Status status = path->predict(one.operation, time); !status.ok()) return status;
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
    return communicator->enqueue({&one, 1}, stream);
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

// Ranks of one thread could not answer each other one by one.
void Group::announceAll(const std::vector<Queued>& queued) {
  std::vector<std::pair<Communicator*, std::vector<Operation>>> all;
  for (const Queued& one : queued) {
    const auto isIts = [&](const auto& entry) { return entry.first == one.communicator.get(); };
    auto found = std::find_if(all.begin(), all.end(), isIts);
    if (found == all.end()) found = all.insert(all.end(), {one.communicator.get(), {}});
    found->second.push_back(one.operation);
  }
  for (const auto& [communicator, operations] : all) communicator->announce(operations);
  for (const auto& [communicator, operations] : all) communicator->consent();
}

// Per communicator, in the order of the calls; the communicators in an order that is the same on all ranks: where two
// share a stream, one waits for the other. A communicator's operations on several streams run together, after what any
// of these has before and before what any of them has after.
ncclResult_t Group::enqueueAll(std::vector<Queued> queued) {
  ncclResult_t first = ncclSuccess;
  const auto note = [&](ncclResult_t result) {
    if (first == ncclSuccess || first == ncclInProgress) first = result == ncclSuccess ? first : result;
  };
  const auto another = [&](const Queued& one) { return one.communicator != queued.front().communicator; };
  if (std::any_of(queued.begin(), queued.end(), another)) {
    std::stable_sort(queued.begin(), queued.end(), [](const Queued& one, const Queued& other) {
      return Communicator::earlier(*one.communicator, *other.communicator);
    });
    announceAll(queued);
  }
  while (!queued.empty()) {
    const std::shared_ptr<Communicator> communicator = queued.front().communicator;
    const ncclrunStream_t stream = queued.front().stream;
    const auto others = std::stable_partition(queued.begin(), queued.end(),
                                              [&](const Queued& one) { return one.communicator == communicator; });
    std::vector<Operation> together;
    std::vector<ncclrunStream_t> beside;
    std::for_each(queued.begin(), others, [&](const Queued& one) {
      together.push_back(one.operation);
      if (one.stream != stream && std::find(beside.begin(), beside.end(), one.stream) == beside.end())
        beside.push_back(one.stream);
    });
    Status ordered;
    for (const ncclrunStream_t other : beside) {
      if (ordered.ok()) ordered = communicator->order(stream, other);
    }
    note(ordered.ok() ? communicator->enqueue(together, stream) : fail(ordered));
    for (const ncclrunStream_t other : beside) {
      if (ordered.ok()) ordered = communicator->order(other, stream);
    }
    if (!ordered.ok()) note(fail(ordered));
    queued.erase(queued.begin(), others);
  }
  return first;
}

}  // namespace ncclrun
