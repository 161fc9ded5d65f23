// Buffers that a program registers. The data path may use them; what it does with them is its device's business.
#include "abi/call.h"
#include "abi/newer.h"

using namespace ncclrun;

namespace {

// What any version of the interface may set: NCCL_WIN_COLL_SYMMETRIC, and since 2.29 strict ordering and network only.
constexpr int kKnownFlags = 0x07;

// body(communicator) of a communicator that is known.
template <typename Body>
ncclResult_t withCommunicatorInGroup(const char* function, ncclComm_t comm, Body&& body) noexcept {
  return callInGroup(function, [&] {
    const auto communicator = lookUp(function, comm);
    return communicator == nullptr ? ncclInvalidArgument : body(*communicator);
  });
}

ncclResult_t add(const char* function, Communicator& communicator, const RegisteredBuffer& buffer, uintptr_t& handle) {
  if (const auto bad = checkPointer(function, "buff", buffer.address); bad != ncclSuccess) return bad;
  if (buffer.bytes == 0) return fail(ncclInvalidArgument, "%s: size is 0", function);
  DataPath* path = communicator.ready(function);
  if (path == nullptr) return whyNotReady(communicator);
  if (Status status = path->registerBuffer(buffer); !status.ok()) return fail(status);
  handle = communicator.registrations().add(buffer);
  return ncclSuccess;
}

ncclResult_t unknown(const char* function, const char* name, const void* handle) {
  return fail(ncclInvalidArgument, "%s: %s %p is not registered with this communicator, or no longer", function, name,
              handle);
}

// Also of a communicator that is broken.
ncclResult_t forget(const char* function, const char* name, ncclComm_t comm, const void* handle, bool window) noexcept {
  return withCommunicatorInGroup(function, comm, [&](Communicator& communicator) {
    if (handle == nullptr) return ncclSuccess;
    const auto buffer = communicator.registrations().remove(reinterpret_cast<uintptr_t>(handle), window);
    if (!buffer.has_value()) return unknown(function, name, handle);
    DataPath* path = communicator.state() == Communicator::State::ready ? communicator.ready(function) : nullptr;
    if (path != nullptr) path->forgetBuffer(*buffer);
    return ncclSuccess;
  });
}

}  // namespace

NCCLRUN_EXPORT ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  constexpr const char* kName = "ncclCommRegister";
  return withCommunicatorInGroup(kName, comm, [&](Communicator& communicator) {
    if (const auto bad = checkPointer(kName, "handle", handle); bad != ncclSuccess) return bad;
    *handle = nullptr;
    uintptr_t number = 0;
    const auto result = add(kName, communicator, {buff, size, false, 0}, number);
    if (result == ncclSuccess) *handle = reinterpret_cast<void*>(number);
    return result;
  });
}
NCCLRUN_TWIN(ncclCommRegister);

NCCLRUN_EXPORT ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  return forget("ncclCommDeregister", "handle", comm, handle, false);
}
NCCLRUN_TWIN(ncclCommDeregister);

NCCLRUN_EXPORT ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                                   int winFlags) {
  constexpr const char* kName = "ncclCommWindowRegister";
  return withCommunicatorInGroup(kName, comm, [&](Communicator& communicator) {
    if (const auto bad = checkPointer(kName, "win", win); bad != ncclSuccess) return bad;
    *win = nullptr;
    if ((winFlags & ~kKnownFlags) != 0) {
      return fail(ncclInvalidArgument, "%s: winFlags is 0x%x; there is NCCL_WIN_DEFAULT and NCCL_WIN_COLL_SYMMETRIC",
                  kName, static_cast<unsigned>(winFlags));
    }
    uintptr_t number = 0;
    const auto result = add(kName, communicator, {buff, size, true, winFlags}, number);
    if (result == ncclSuccess) *win = reinterpret_cast<ncclWindow_t>(number);
    return result;
  });
}
NCCLRUN_TWIN(ncclCommWindowRegister);

NCCLRUN_EXPORT ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  return forget("ncclCommWindowDeregister", "win", comm, win, true);
}
NCCLRUN_TWIN(ncclCommWindowDeregister);

NCCLRUN_EXPORT ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr) {
  constexpr const char* kName = "ncclWinGetUserPtr";
  return withCommunicatorInGroup(kName, comm, [&](Communicator& communicator) {
    if (const auto bad = checkPointer(kName, "outUserPtr", outUserPtr); bad != ncclSuccess) return bad;
    *outUserPtr = nullptr;
    const auto buffer = communicator.registrations().find(reinterpret_cast<uintptr_t>(win), true);
    if (!buffer.has_value()) return unknown(kName, "win", win);
    *outUserPtr = buffer->address;
    return ncclSuccess;
  });
}
NCCLRUN_TWIN(ncclWinGetUserPtr);
