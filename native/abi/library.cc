// What can be asked of the library without a communicator.
#include "abi/call.h"
#include "agent/environment.h"
#include "agent/unique_id.h"
#include "base/debug.h"
#include "base/version.h"
#include "communicator/registry.h"
#include "ncclrun.h"

using namespace ncclrun;

NCCLRUN_EXPORT ncclResult_t ncclGetVersion(int* version) {
  return call("ncclGetVersion", [&] {
    if (const auto bad = checkPointer("ncclGetVersion", "version", version); bad != ncclSuccess) return bad;
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
  });
}
NCCLRUN_TWIN(ncclGetVersion);

NCCLRUN_EXPORT const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "success";
    case ncclUnhandledCudaError:
      return "a CUDA call failed";
    case ncclSystemError:
      return "a call to the operating system failed";
    case ncclInternalError:
      return "a fault inside the engine";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "another rank died, aborted or lost its connection";
    case ncclInProgress:
      return "under way";
    case ncclTimeout:
      return "timed out";
    case ncclNumResults:
      break;
  }
  return "unknown result code";
}
NCCLRUN_TWIN(ncclGetErrorString);

NCCLRUN_EXPORT const char* ncclGetLastError(ncclComm_t comm) {
  if (inForkedChild()) return lastError();
  call("ncclGetLastError", [&] {
    const auto communicator = comm == nullptr ? nullptr : Registry::get().find(comm);
    if (communicator == nullptr) return ncclSuccess;
    const Status status = communicator->asyncError();
    return status.ok() || status.code == ncclInProgress ? ncclSuccess : fail(status);
  });
  return lastError();
}
NCCLRUN_TWIN(ncclGetLastError);

NCCLRUN_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  return call("ncclGetUniqueId", [&] {
    if (const auto bad = checkPointer("ncclGetUniqueId", "uniqueId", uniqueId); bad != ncclSuccess) return bad;
    const ncclResult_t made = makeUniqueId(*uniqueId);
    return made == ncclSuccess ? addOrigin(*uniqueId) : made;
  });
}
NCCLRUN_TWIN(ncclGetUniqueId);

NCCLRUN_EXPORT void ncclResetDebugInit(void) { resetDebug(); }
NCCLRUN_TWIN(ncclResetDebugInit);

NCCLRUN_EXPORT const char* ncclrunVersion(void) { return engineVersion(); }

NCCLRUN_EXPORT ncclResult_t ncclrunGetJob(ncclUniqueId* uniqueId, int* size, int* rank) {
  return call("ncclrunGetJob", [&] {
    if (uniqueId == nullptr || size == nullptr || rank == nullptr) {
      return fail(ncclInvalidArgument, "ncclrunGetJob: uniqueId, size or rank is NULL");
    }
    const Status status = readJob(*uniqueId, *size, *rank);
    return status.ok() ? ncclSuccess : fail({status.code, "ncclrunGetJob: " + status.sentence});
  });
}
