// What can be asked of a communicator, and its end.
#include "communicator/communicator.h"

#include <algorithm>
#include <span>

#include "abi/call.h"
#include "abi/newer.h"
#include "communicator/registry.h"
#include "ncclrun.h"

using namespace ncclrun;

namespace {

// Looks the communicator up, then runs body(communicator).
template <typename Body>
ncclResult_t withCommunicator(const char* function, ncclComm_t comm, Body&& body) noexcept {
  return call(function, [&] {
    const auto communicator = lookUp(function, comm);
    return communicator == nullptr ? ncclInvalidArgument : body(*communicator);
  });
}

// The same for a communicator that is ready: body(dataPath).
template <typename Body>
ncclResult_t withDataPath(const char* function, ncclComm_t comm, Body&& body) noexcept {
  return withCommunicator(function, comm, [&](Communicator& communicator) {
    DataPath* path = communicator.ready(function);
    if (path != nullptr) return body(*path);
    return whyNotReady(communicator);
  });
}

ncclResult_t resultOf(const Status& status) {
  return status.ok() || status.code == ncclInProgress ? status.code : fail(status);
}

ncclResult_t answer(const char* function, const char* name, int* target, const Communicator& communicator,
                    uint32_t (Communicator::*value)() const) {
  if (const auto bad = checkPointer(function, name, target); bad != ncclSuccess) return bad;
  if (!communicator.hasMembership()) {
    return fail(ncclInvalidUsage,
                "%s: the other ranks have not all called ncclCommSplit or ncclCommShrink; wait until "
                "ncclCommGetAsyncError no longer says ncclInProgress",
                function);
  }
  *target = static_cast<int>((communicator.*value)());
  return ncclSuccess;
}

}  // namespace

NCCLRUN_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  return withCommunicator("ncclCommFinalize", comm,
                          [](Communicator& communicator) { return resultOf(communicator.finalize()); });
}
NCCLRUN_TWIN(ncclCommFinalize);

NCCLRUN_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return withCommunicator("ncclCommRevoke", comm, [revokeFlags](Communicator& communicator) {
    if (revokeFlags == NCCL_REVOKE_DEFAULT) return resultOf(communicator.revoke("ncclCommRevoke"));
    return fail(ncclInvalidArgument, "ncclCommRevoke: revokeFlags is 0x%x; it must be NCCL_REVOKE_DEFAULT",
                static_cast<unsigned>(revokeFlags));
  });
}
NCCLRUN_TWIN(ncclCommRevoke);

NCCLRUN_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  return withCommunicator("ncclCommDestroy", comm, [comm](Communicator& communicator) {
    Status differing;
    if (Status status = communicator.close(differing); !status.ok()) return fail(status);
    Registry::get().remove(comm);
    return resultOf(differing);
  });
}
NCCLRUN_TWIN(ncclCommDestroy);

NCCLRUN_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  return withCommunicator("ncclCommAbort", comm, [comm](Communicator& communicator) {
    Registry::get().remove(comm);
    communicator.abort({}, FailureScope::alone);
    return ncclSuccess;
  });
}
NCCLRUN_TWIN(ncclCommAbort);

NCCLRUN_EXPORT ncclResult_t ncclrunCommAbort(ncclComm_t comm, const char* reason) {
  if (comm == nullptr) return ncclSuccess;
  return withCommunicator("ncclrunCommAbort", comm, [comm, reason](Communicator& communicator) {
    Registry::get().remove(comm);
    communicator.abort(reason == nullptr ? "" : reason, FailureScope::all);
    return ncclSuccess;
  });
}

NCCLRUN_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return withCommunicator("ncclCommGetAsyncError", comm, [&](Communicator& communicator) {
    if (const auto bad = checkPointer("ncclCommGetAsyncError", "asyncError", asyncError); bad != ncclSuccess)
      return bad;
    *asyncError = resultOf(communicator.asyncError());
    return ncclSuccess;
  });
}
NCCLRUN_TWIN(ncclCommGetAsyncError);

NCCLRUN_EXPORT ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return withCommunicator("ncclCommCount", comm, [&](const Communicator& communicator) {
    return answer("ncclCommCount", "count", count, communicator, &Communicator::size);
  });
}
NCCLRUN_TWIN(ncclCommCount);

NCCLRUN_EXPORT ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return withCommunicator("ncclCommUserRank", comm, [&](const Communicator& communicator) {
    return answer("ncclCommUserRank", "rank", rank, communicator, &Communicator::rank);
  });
}
NCCLRUN_TWIN(ncclCommUserRank);

NCCLRUN_EXPORT ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return withCommunicator("ncclCommCuDevice", comm, [device](const Communicator& communicator) {
    if (const auto bad = checkPointer("ncclCommCuDevice", "device", device); bad != ncclSuccess) return bad;
    if (communicator.gpu().has_value()) {
      *device = communicator.gpu()->device;
      return ncclSuccess;
    }
    return fail(ncclInvalidUsage,
                "ncclCommCuDevice: this communicator lives on the host device and has no CUDA device");
  });
}
NCCLRUN_TWIN(ncclCommCuDevice);

// Nothing is ever suspended.
NCCLRUN_EXPORT ncclResult_t ncclCommMemStats(ncclComm_t comm, int stat, uint64_t* value) {
  return withDataPath("ncclCommMemStats", comm, [&](const DataPath& path) {
    if (const auto bad = checkPointer("ncclCommMemStats", "value", value); bad != ncclSuccess) return bad;
    constexpr int kSuspendable = 0, kSuspended = 1, kPersistent = 2, kTotal = 3;
    switch (stat) {
      case kSuspendable:
      case kSuspended:
        *value = 0;
        return ncclSuccess;
      case kPersistent:
      case kTotal:
        *value = path.gpuBytes();
        return ncclSuccess;
      default:
        return fail(ncclInvalidArgument, "ncclCommMemStats: there is no statistic %d; 0 to 3 are", stat);
    }
  });
}
NCCLRUN_TWIN(ncclCommMemStats);

NCCLRUN_EXPORT ncclResult_t ncclrunCommLetQueueGrow(ncclComm_t comm) {
  return withCommunicator("ncclrunCommLetQueueGrow", comm, [](Communicator& communicator) {
    communicator.letQueueGrow();
    return ncclSuccess;
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunCommGetVariant(ncclComm_t comm, uint32_t collective, uint64_t bytes,
                                                  ncclrunVariant* variant) {
  return withDataPath("ncclrunCommGetVariant", comm, [&](const DataPath& path) {
    if (const auto bad = checkPointer("ncclrunCommGetVariant", "variant", variant); bad != ncclSuccess) return bad;
    return resultOf(path.variant(plan::Collective(std::min(collective, 255u)), bytes, *variant));
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunCommChooseAs(ncclComm_t comm, uint64_t bytes) {
  return withCommunicator("ncclrunCommChooseAs", comm, [bytes](Communicator& communicator) {
    communicator.chooseAs(bytes);
    return ncclSuccess;
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunNodeBarrier(ncclComm_t comm) {
  return withDataPath("ncclrunNodeBarrier", comm, [](DataPath& path) { return result(path.nodeBarrier()); });
}

NCCLRUN_EXPORT ncclResult_t ncclrunCommGetInfo(ncclComm_t comm, ncclrunCommInfo* info) {
  return withDataPath("ncclrunCommGetInfo", comm, [&](const DataPath& path) {
    if (const auto bad = checkPointer("ncclrunCommGetInfo", "info", info); bad != ncclSuccess) return bad;
    path.info(*info);
    return ncclSuccess;
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunCommHostName(ncclComm_t comm, uint32_t index, const char** name) {
  return withDataPath("ncclrunCommHostName", comm, [&](const DataPath& path) {
    if (const auto bad = checkPointer("ncclrunCommHostName", "name", name); bad != ncclSuccess) return bad;
    *name = path.hostName(index);
    if (*name != nullptr) return ncclSuccess;
    return fail(ncclInvalidArgument, "ncclrunCommHostName: the communicator has no host %u", index);
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunCommGetNics(ncclComm_t comm, uint32_t index, ncclrunNic* nics, size_t* count) {
  constexpr const char* kName = "ncclrunCommGetNics";
  return withCommunicator(kName, comm, [&](Communicator& communicator) {
    if (communicator.ready(kName) == nullptr) return whyNotReady(communicator);
    if (const auto bad = checkPointer(kName, "count", count); bad != ncclSuccess) return bad;
    if (nics == nullptr && *count > 0) return checkPointer(kName, "nics", nics);
    const Status status = communicator.nics(index, {nics, *count}, *count);
    return status.ok() ? ncclSuccess : fail(status.code, "%s: %s", kName, status.sentence.c_str());
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunCommGetEdges(ncclComm_t comm, ncclrunEdge* edges, size_t* count) {
  return withDataPath("ncclrunCommGetEdges", comm, [&](const DataPath& path) {
    if (const auto bad = checkPointer("ncclrunCommGetEdges", "count", count); bad != ncclSuccess) return bad;
    if (edges == nullptr && *count > 0) {
      return fail(ncclInvalidArgument, "ncclrunCommGetEdges: edges is NULL, *count is %zu", *count);
    }
    *count = path.edges(std::span(edges, *count));
    return ncclSuccess;
  });
}
