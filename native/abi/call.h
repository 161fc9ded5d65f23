// What every function of the C interface does around its body.
#pragma once
#include <exception>
#include <memory>
#include <system_error>

#include "base/error.h"
#include "base/fork.h"
#include "communicator/communicator.h"
#include "communicator/group.h"

#define NCCLRUN_EXPORT extern "C" __attribute__((visibility("default")))
// The same function under its profiling name, in the file that defines it.
#define NCCLRUN_TWIN(name) NCCLRUN_EXPORT decltype(name) p##name __attribute__((alias(#name)))

namespace ncclrun {

// For NCCL_DEBUG=WARN: the sentence of the call that ends with `result`.
void warnOf(ncclResult_t result) noexcept;

// Runs `body` unless this is a forked child; no exception leaves.
template <typename Body>
ncclResult_t call(const char* function, Body&& body) noexcept {
  if (inForkedChild()) {
    return fail(
        ncclInvalidUsage,
        "%s: this process was forked from one that uses the engine and cannot use it itself; start it with exec",
        function);
  }
  ncclResult_t result;
  try {
    result = body();
  } catch (const std::bad_alloc&) {
    result = fail(ncclSystemError, "%s: out of memory", function);
  } catch (const std::system_error& error) {
    result = fail(ncclSystemError, "%s: %s", function, error.what());
  } catch (const std::exception& exception) {
    result = fail(ncclInternalError, "%s: %s", function, exception.what());
  }
  if (result != ncclSuccess && result != ncclInProgress) warnOf(result);
  return result;
}

// The same for a call that a group may hold: its failure is the group's.
template <typename Body>
ncclResult_t callInGroup(const char* function, Body&& body) noexcept {
  return call(function, [&] {
    const ncclResult_t result = body();
    return result == ncclSuccess || result == ncclInProgress ? result : Group::current().noteFailure(result);
  });
}

// The communicator of a handle, or null with the sentence set.
std::shared_ptr<Communicator> lookUp(const char* function, ncclComm_t comm);

// Why Communicator::ready() gave nothing; its sentence is set.
ncclResult_t whyNotReady(Communicator& communicator);

// ncclSuccess, or the sentence that `function` was given NULL for its parameter `name`.
ncclResult_t checkPointer(const char* function, const char* name, const void* pointer);

}  // namespace ncclrun
