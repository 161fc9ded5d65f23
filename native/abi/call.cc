#include "abi/call.h"

#include "base/debug.h"
#include "communicator/registry.h"

namespace ncclrun {

void warnOf(ncclResult_t result) noexcept {
  try {
    const char* const sentence = lastError();
    logWarning(*sentence == '\0' ? ncclGetErrorString(result) : sentence);
  } catch (const std::exception&) {
    // There is no memory for the line.
  }
}

std::shared_ptr<Communicator> lookUp(const char* function, ncclComm_t comm) {
  if (comm == nullptr) {
    fail(ncclInvalidArgument, "%s: comm is NULL", function);
    return nullptr;
  }
  auto communicator = Registry::get().find(comm);
  if (communicator == nullptr) {
    fail(ncclInvalidArgument,
         "%s: comm %p is no communicator of this process: it was destroyed or aborted, or never was one", function,
         static_cast<const void*>(comm));
  }
  return communicator;
}

ncclResult_t whyNotReady(Communicator& communicator) {
  const Status status = communicator.asyncError();
  return status.ok() || status.code == ncclInProgress ? ncclInvalidUsage : status.code;
}

ncclResult_t checkPointer(const char* function, const char* name, const void* pointer) {
  return pointer != nullptr ? ncclSuccess : fail(ncclInvalidArgument, "%s: %s is NULL", function, name);
}

}  // namespace ncclrun
