// What other versions of the interface have and this library does not: each name is there, so that programs that refer
// to it load, and answers ncclInvalidUsage with a sentence. docs/compatibility.md lists them.
#include "abi/call.h"
#include "abi/newer.h"
#include "base/debug.h"

using namespace ncclrun;

namespace {

constexpr const char* kGrow = "this library does not add ranks to a communicator; make a new one with ncclCommInitRank";
constexpr const char* kSuspend = "this library does not suspend communicators";
constexpr const char* kOneSided = "this library has no one-sided operations; use ncclSend and ncclRecv";
constexpr const char* kParameters =
    "this library has no table of parameters; it reads NCCL_* variables where it starts";
constexpr const char* kDevice =
    "this library has no device API: kernels of the program cannot communicate. Use operations that the host calls; "
    "ncclCommQueryProperties says so by deviceApiSupport, and nccl-tests need -D 0";

ncclResult_t refuse(const char* function, const char* why) noexcept {
  return callInGroup(function, [&] { return fail(ncclInvalidUsage, "%s: %s", function, why); });
}

}  // namespace

#define NCCLRUN_UNAVAILABLE(name, parameters, why)                           \
  NCCLRUN_EXPORT ncclResult_t name parameters { return refuse(#name, why); } \
  NCCLRUN_TWIN(name)

NCCLRUN_UNAVAILABLE(ncclCommGetUniqueId, (ncclComm_t, ncclUniqueId*), kGrow);
NCCLRUN_UNAVAILABLE(ncclCommGrow, (ncclComm_t, int, const ncclUniqueId*, int, ncclComm_t*, ncclConfig_t*), kGrow);
NCCLRUN_UNAVAILABLE(ncclCommSuspend, (ncclComm_t, int), kSuspend);
NCCLRUN_UNAVAILABLE(ncclCommResume, (ncclComm_t), kSuspend);
NCCLRUN_UNAVAILABLE(ncclPutSignal,
                    (const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int, int, unsigned, ncclComm_t,
                     cudaStream_t),
                    kOneSided);
NCCLRUN_UNAVAILABLE(ncclSignal, (int, int, int, unsigned, ncclComm_t, cudaStream_t), kOneSided);
NCCLRUN_UNAVAILABLE(ncclWaitSignal, (int, ncclWaitSignalDesc_t*, ncclComm_t, cudaStream_t), kOneSided);

NCCLRUN_UNAVAILABLE(ncclParamBind, (ncclParamHandle_t*, const char*), kParameters);
NCCLRUN_UNAVAILABLE(ncclParamGetI8, (ncclParamHandle_t, int8_t*), kParameters);
NCCLRUN_UNAVAILABLE(ncclParamGetI16, (ncclParamHandle_t, int16_t*), kParameters);
NCCLRUN_UNAVAILABLE(ncclParamGetI32, (ncclParamHandle_t, int32_t*), kParameters);
NCCLRUN_UNAVAILABLE(ncclParamGetI64, (ncclParamHandle_t, int64_t*), kParameters);
NCCLRUN_UNAVAILABLE(ncclParamGetU8, (ncclParamHandle_t, uint8_t*), kParameters);
NCCLRUN_UNAVAILABLE(ncclParamGetU16, (ncclParamHandle_t, uint16_t*), kParameters);
NCCLRUN_UNAVAILABLE(ncclParamGetU32, (ncclParamHandle_t, uint32_t*), kParameters);
NCCLRUN_UNAVAILABLE(ncclParamGetU64, (ncclParamHandle_t, uint64_t*), kParameters);
NCCLRUN_UNAVAILABLE(ncclParamGetStr, (ncclParamHandle_t, const char**), kParameters);
NCCLRUN_UNAVAILABLE(ncclParamGet, (ncclParamHandle_t, void*, int, int*), kParameters);
NCCLRUN_UNAVAILABLE(ncclParamGetParameter, (const char*, const char**, int*), kParameters);
NCCLRUN_UNAVAILABLE(ncclParamGetAllParameterKeys, (const char***, int*), kParameters);

NCCLRUN_UNAVAILABLE(ncclDevCommCreate, (ncclComm_t, const void*, void*), kDevice);
NCCLRUN_UNAVAILABLE(ncclDevCommDestroy, (ncclComm_t, const void*), kDevice);
NCCLRUN_UNAVAILABLE(ncclGetLsaMultimemDevicePointer, (ncclWindow_t, size_t, void**), kDevice);
NCCLRUN_UNAVAILABLE(ncclGetMultimemDevicePointer, (ncclWindow_t, size_t, ncclMultimemHandle_t, void**), kDevice);
NCCLRUN_UNAVAILABLE(ncclGetLsaDevicePointer, (ncclWindow_t, size_t, int, void**), kDevice);
NCCLRUN_UNAVAILABLE(ncclGetPeerDevicePointer, (ncclWindow_t, size_t, int, void**), kDevice);
NCCLRUN_UNAVAILABLE(ncclLsaBarrierCreateRequirement, (ncclTeam_t, int, void*, void*), kDevice);
NCCLRUN_UNAVAILABLE(ncclGinBarrierCreateRequirement, (ncclComm_t, ncclTeam_t, int, void*, void*), kDevice);
NCCLRUN_UNAVAILABLE(ncclGinOutboxCreateRequirement, (int, int, void*, void*), kDevice);
NCCLRUN_UNAVAILABLE(ncclGinInboxA2ACreateRequirement, (ncclTeam_t, int, int, void*, void*), kDevice);
NCCLRUN_UNAVAILABLE(ncclLLA2ACreateRequirement, (int, int, void*, void*), kDevice);

// -1: not a number of slots.
NCCLRUN_EXPORT int ncclLLA2ACalcSlots(int, int) {
  refuse("ncclLLA2ACalcSlots", kDevice);
  return -1;
}
NCCLRUN_TWIN(ncclLLA2ACalcSlots);

NCCLRUN_EXPORT void ncclParamDumpAll(void) {}
NCCLRUN_TWIN(ncclParamDumpAll);

NCCLRUN_EXPORT void ncclResetDebugInitInternal(void) { resetDebug(); }
NCCLRUN_TWIN(ncclResetDebugInitInternal);
