// Joining a communicator.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "abi/call.h"
#include "agent/config.h"
#include "agent/unique_id.h"
#include "base/debug.h"
#include "base/variables.h"
#include "communicator/device_choice.h"
#include "communicator/registry.h"
#include "ncclrun.h"

using namespace ncclrun;

namespace {

ncclResult_t refuse(const char* function, const Status& status) {
  return fail({status.code, std::string(function) + ": " + status.sentence});
}

void logDeviceChoice(int size, int rank, const std::optional<cuda::Gpu>& gpu, ncclrunDevice_t wanted) {
  logStartup(rank == 0);
  if (!debugs(DebugLevel::info)) return;
  const std::string location =
      gpu.has_value() ? formatSentence("GPU %d", gpu->device) : "the host device, because " + whyHostDevice(wanted);
  logInfo(formatSentence("rank %d of %d is on %s", rank, size, location.c_str()));
}

// A communicator that has not begun to join.
ncclResult_t make(const char* function, ncclComm_t* comm, int size, const ncclUniqueId& id, int rank,
                  const ncclConfig_t* config, ncclrunDevice_t device, std::shared_ptr<Communicator>& made) {
  if (const auto bad = checkPointer(function, "comm", comm); bad != ncclSuccess) return bad;
  *comm = nullptr;
  if (size < 1 || rank < 0 || rank >= size) {
    return fail(ncclInvalidArgument, "%s: rank %d of %d ranks; ranks go from 0 to nranks - 1", function, rank, size);
  }
  CommSettings settings;
  if (Status status = readConfig(config, settings); !status.ok()) return refuse(function, status);
  std::optional<cuda::Gpu> gpu;
  if (Status status = chooseDevice(device, gpu); !status.ok()) return refuse(function, status);
  if (Status status = checkUniqueId(id); !status.ok()) return refuse(function, status);
  logDeviceChoice(size, rank, gpu, device);
  made = std::make_shared<Communicator>(id, static_cast<uint32_t>(size), static_cast<uint32_t>(rank), settings, gpu);
  return ncclSuccess;
}

ncclResult_t join(const char* function, ncclComm_t* comm, int size, const ncclUniqueId& id, int rank,
                  const ncclConfig_t* config) {
  std::shared_ptr<Communicator> made;
  const auto bad = make(function, comm, size, id, rank, config, ncclrunDeviceAutomatic, made);
  return bad != ncclSuccess ? bad : Group::current().join(std::move(made), comm);
}

ncclResult_t split(const char* function, ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                   const ncclConfig_t* config) {
  if (const auto bad = checkPointer(function, "newcomm", newcomm); bad != ncclSuccess) return bad;
  *newcomm = nullptr;
  const auto parent = lookUp(function, comm);
  if (parent == nullptr) return ncclInvalidArgument;
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR) {
    return fail(ncclInvalidArgument, "%s: color is %d; it must be 0 or more, or NCCL_SPLIT_NOCOLOR", function, color);
  }
  CommSettings settings = parent->settings();
  if (Status status = readConfig(config, settings); !status.ok()) return refuse(function, status);
  std::shared_ptr<Communicator> part;
  if (Status status = Communicator::split(*parent, color, key, settings, part); !status.ok()) {
    return fail(status);
  }
  return Group::current().join(std::move(part), newcomm);
}

// Beyond NCCL, which refuses 0: no rank is named with NCCL_SHRINK_ABORT, so all that are gone are left out.
Status readExcluded(const int* list, int count, int flags, const Communicator& parent, LeftOut& leftOut) {
  leftOut.gone = count == 0 && flags == NCCL_SHRINK_ABORT;
  if (leftOut.gone) return {};
  if (list == nullptr) return {ncclInvalidArgument, "excludeRanksList is NULL"};
  if (count < 1) {
    return {ncclInvalidArgument, formatSentence("excludeRanksCount is %d; at least one rank is left out, or with "
                                                "NCCL_SHRINK_ABORT 0 for all that are gone",
                                                count)};
  }
  std::vector<uint32_t>& out = leftOut.ranks;
  out.assign(list, list + count);
  std::sort(out.begin(), out.end());
  for (const uint32_t rank : out) {
    if (rank >= parent.size()) {
      return {ncclInvalidArgument, formatSentence("excludeRanksList has rank %d; the communicator has ranks 0 to %u",
                                                  static_cast<int>(rank), parent.size() - 1)};
    }
    if (rank == parent.rank()) {
      return {ncclInvalidArgument,
              formatSentence("excludeRanksList has rank %u, the caller; ranks left out do not call", rank)};
    }
  }
  const auto twice = std::adjacent_find(out.begin(), out.end());
  if (twice == out.end()) return {};
  return {ncclInvalidArgument, formatSentence("excludeRanksList has rank %u twice", *twice)};
}

ncclResult_t shrink(const char* function, ncclComm_t comm, const int* excluded, int count, ncclComm_t* newcomm,
                    const ncclConfig_t* config, int flags) {
  if (const auto bad = checkPointer(function, "newcomm", newcomm); bad != ncclSuccess) return bad;
  *newcomm = nullptr;
  const auto parent = lookUp(function, comm);
  if (parent == nullptr) return ncclInvalidArgument;
  if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT) {
    return fail(ncclInvalidArgument, "%s: shrinkFlags is 0x%x; there is NCCL_SHRINK_DEFAULT and NCCL_SHRINK_ABORT",
                function, static_cast<unsigned>(flags));
  }
  if (Status status = parent->checkSplittable(function, true); !status.ok()) return fail(status);
  LeftOut leftOut;
  if (Status status = readExcluded(excluded, count, flags, *parent, leftOut); !status.ok()) {
    return refuse(function, status);
  }
  CommSettings settings = parent->settings();
  if (Status status = readConfig(config, settings); !status.ok()) return refuse(function, status);
  if (flags == NCCL_SHRINK_ABORT) {
    if (Status status = parent->revoke(function); !status.ok()) return fail(status);
  }
  std::shared_ptr<Communicator> made;
  if (Status status = Communicator::shrink(*parent, std::move(leftOut), settings, made); !status.ok()) {
    return fail(status);
  }
  return Group::current().join(std::move(made), newcomm);
}

// With NCCL_MULTI_RANK_GPU_ENABLE=1 ranks may share a GPU.
Status checkDevices(const int* devices, int count) {
  if (devices == nullptr) return {};
  const char* const text = ncclVariable("NCCL_MULTI_RANK_GPU_ENABLE");
  const bool mayShare = text != nullptr && std::strcmp(text, "1") == 0;
  std::map<int, int> indexes;
  for (int i = 0; i < count; i++) {
    if (devices[i] < 0) return {ncclInvalidArgument, formatSentence("devlist[%d] is %d", i, devices[i])};
    const auto [first, fresh] = indexes.try_emplace(devices[i], i);
    if (!fresh && !mayShare) {
      return {ncclInvalidUsage, formatSentence("duplicate device: devlist[%d] and devlist[%d] are both %d; with "
                                               "NCCL_MULTI_RANK_GPU_ENABLE=1 ranks share it",
                                               first->second, i, devices[i])};
    }
  }
  return {};
}

// Ranks on GPUs take theirs from the thread's current context, which is as it was afterwards.
class DeviceKeeper {
 public:
  DeviceKeeper() : onGpus_(chooseDevice(ncclrunDeviceAutomatic, before_).ok() && before_.has_value()) {}
  ~DeviceKeeper() {
    if (onGpus_) cuda::driver().ctxSetCurrent(before_->context);
  }
  DeviceKeeper(const DeviceKeeper&) = delete;
  DeviceKeeper& operator=(const DeviceKeeper&) = delete;
  ncclResult_t use(int device) const { return onGpus_ ? ncclrunGpuUse(device) : ncclSuccess; }

 private:
  std::optional<cuda::Gpu> before_;
  const bool onGpus_;
};

ncclResult_t joinAll(const char* function, ncclComm_t* comms, int count, const int* devices) {
  if (const auto bad = checkPointer(function, "comms", comms); bad != ncclSuccess) return bad;
  if (count < 1) return fail(ncclInvalidArgument, "%s: ndev is %d; it must be at least 1", function, count);
  std::fill_n(comms, count, nullptr);
  if (Status status = checkDevices(devices, count); !status.ok()) return refuse(function, status);
  ncclUniqueId id;
  if (const auto bad = makeUniqueId(id); bad != ncclSuccess) return bad;
  Group& group = Group::current();
  group.begin();
  const DeviceKeeper keeper;
  for (int rank = 0; rank < count; rank++) {
    ncclResult_t bad = keeper.use(devices == nullptr ? rank : devices[rank]);
    if (bad == ncclSuccess) bad = join(function, &comms[rank], count, id, rank, nullptr);
    if (bad != ncclSuccess) {
      group.noteFailure(bad);
      break;
    }
  }
  const ncclResult_t result = group.end();
  if (result == ncclSuccess) return result;
  for (ncclComm_t* comm = comms; comm != comms + count; comm++) {  // all or none
    if (*comm == nullptr) continue;
    if (const auto joined = Registry::get().remove(*comm); joined != nullptr)
      joined->abort("ncclCommInitAll failed", FailureScope::all);
    *comm = nullptr;
  }
  return result;
}

}  // namespace

NCCLRUN_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return callInGroup("ncclCommInitRank", [&] { return join("ncclCommInitRank", comm, nranks, commId, rank, nullptr); });
}
NCCLRUN_TWIN(ncclCommInitRank);

NCCLRUN_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                                   ncclConfig_t* config) {
  return callInGroup("ncclCommInitRankConfig",
                     [&] { return join("ncclCommInitRankConfig", comm, nranks, commId, rank, config); });
}
NCCLRUN_TWIN(ncclCommInitRankConfig);

NCCLRUN_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                                     ncclUniqueId* commIds, ncclConfig_t* config) {
  constexpr const char* kName = "ncclCommInitRankScalable";
  return callInGroup(kName, [&] {
    if (const auto bad = checkPointer(kName, "commIds", commIds); bad != ncclSuccess) return bad;
    if (nId < 1 || nId > nranks) {
      return fail(ncclInvalidArgument, "%s: nId is %d; there are 1 to %d ids, at most one for each rank", kName, nId,
                  nranks);
    }
    for (int i = 1; i < nId; i++) {
      if (Status status = checkUniqueId(commIds[i]); !status.ok()) {
        return fail(status.code, "%s: commIds[%d]: %s", kName, i, status.sentence.c_str());
      }
    }
    return join(kName, newcomm, nranks, commIds[0], myrank, config);
  });
}
NCCLRUN_TWIN(ncclCommInitRankScalable);

NCCLRUN_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ndev, const int* devlist) {
  return callInGroup("ncclCommInitAll", [&] { return joinAll("ncclCommInitAll", comms, ndev, devlist); });
}
NCCLRUN_TWIN(ncclCommInitAll);

NCCLRUN_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                                          ncclConfig_t* config) {
  return callInGroup("ncclCommSplit", [&] { return split("ncclCommSplit", comm, color, key, newcomm, config); });
}
NCCLRUN_TWIN(ncclCommSplit);

NCCLRUN_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                                           ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags) {
  return callInGroup("ncclCommShrink", [&] {
    return shrink("ncclCommShrink", comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags);
  });
}
NCCLRUN_TWIN(ncclCommShrink);

NCCLRUN_EXPORT ncclResult_t ncclrunCommBegin(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                             ncclrunDevice_t device) {
  return call("ncclrunCommBegin", [&] {
    std::shared_ptr<Communicator> made;
    if (const auto bad = make("ncclrunCommBegin", comm, nranks, commId, rank, nullptr, device, made);
        bad != ncclSuccess)
      return bad;
    *comm = Registry::get().add(made);
    made->start(true);
    return ncclSuccess;
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunCommWait(ncclComm_t comm) {
  return call("ncclrunCommWait", [&] {
    const auto communicator = lookUp("ncclrunCommWait", comm);
    if (communicator == nullptr) return ncclInvalidArgument;
    const Status status = communicator->waitReady();
    if (status.ok()) return ncclSuccess;
    Registry::get().remove(comm);
    return fail(status);
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunCommInitPlan(ncclComm_t* comm, const void* plan, size_t planBytes, int segmentFd,
                                                uint32_t rank, int listenFd) {
  return callInGroup("ncclrunCommInitPlan", [&] {
    if (const auto bad = checkPointer("ncclrunCommInitPlan", "comm", comm); bad != ncclSuccess) return bad;
    if (const auto bad = checkPointer("ncclrunCommInitPlan", "plan", plan); bad != ncclSuccess) return bad;
    *comm = nullptr;
    const auto* bytes = static_cast<const std::byte*>(plan);
    std::shared_ptr<Communicator> communicator;
    if (Status status = Communicator::fromPlan({bytes, bytes + planBytes}, segmentFd, rank, listenFd, communicator);
        !status.ok()) {
      return refuse("ncclrunCommInitPlan", status);
    }
    return Group::current().join(std::move(communicator), comm);
  });
}
