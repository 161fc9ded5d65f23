// The CUDA driver's interface, opened at run time: names, types and numbers as NVIDIA's driver has them (CUDA Driver
// API reference), as far as we use them. Nothing here needs CUDA where ncclrun is built.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"

struct CUevent_st;  // as the driver's and our own header declare it

namespace ncclrun::cuda {

using Result = int;
using Device = int;
using Context = struct CUctx_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;
using Stream = struct CUstream_st*;
using Event = struct CUevent_st*;
using Graph = struct CUgraph_st*;
using GraphNode = struct CUgraphNode_st*;
using GraphExec = struct CUgraphExec_st*;
using UserObject = struct CUuserObject_st*;
using Pointer = unsigned long long;  // to memory of a device
inline Pointer pointer(const void* address) { return reinterpret_cast<Pointer>(address); }

struct IpcHandle {
  char reserved[64];
};

// One of what a stream does to words of memory itself, without a kernel.
struct MemoryOperation {
  int operation;
  Pointer address;
  uint64_t value;
  unsigned flags;
  Pointer unused;
  uint64_t further;
};
static_assert(sizeof(MemoryOperation) == 48);
inline constexpr int kMemoryWait32 = 1;  // until the word is not less than the value, modulo 2^32
inline constexpr int kMemoryWrite32 = 2;

// Rows of bytes, each a pitch behind the one before.
struct RowsAt {
  size_t offset, firstRow;
  unsigned memory;
  const void* onHost;
  Pointer pointer;
  const void* array;
  size_t pitch;
};
struct RowsCopy {
  RowsAt from, to;
  size_t width, rows;
};
static_assert(sizeof(RowsCopy) == 128);
inline constexpr unsigned kMemoryDevice = 2;
inline constexpr unsigned kMemoryUnified = 4;  // whatever a pointer points to

inline constexpr Result kSuccess = 0;
inline constexpr Result kNoBinaryForGpu = 209;
inline constexpr Result kNoJitCompiler = 221;
inline constexpr Result kUnsupportedPtx = 222;
inline constexpr Result kNotReady = 600;
inline constexpr Result kPeerAccessAlreadyEnabled = 704;

inline constexpr int kAttributeSms = 16;
inline constexpr int kFunctionRegisters = 4;
inline constexpr int kFunctionMaxDynamicSharedBytes = 8;
inline constexpr int kAttributeMajor = 75;
inline constexpr int kAttributeMinor = 76;
inline constexpr int kAttributeGpuDirect = 116;
inline constexpr int kAttributeDmaBuf = 124;
inline constexpr int kHandleDmaBuf = 1;  // of memory that is a range of addresses: a descriptor
inline constexpr int kPointerMemoryType = 2;
inline constexpr int kPointerBufferId = 7;  // unique in the process, of an allocation
inline constexpr int kPointerIsManaged = 8;
inline constexpr int kPointerDeviceOrdinal = 9;
inline constexpr int kPointerIsLegacyIpcCapable = 10;  // by cuIpcGetMemHandle
inline constexpr unsigned kEventNoTiming = 2;
inline constexpr unsigned kEventRecordExternal = 1;
inline constexpr unsigned kEventWaitExternal = 1;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kIpcLazyPeerAccess = 1;
inline constexpr unsigned kHostPortable = 1;
inline constexpr unsigned kHostMapped = 2;
inline constexpr int kCaptureNone = 0;
inline constexpr int kCaptureActive = 1;
inline constexpr int kCaptureInvalidated = 2;
inline constexpr int kCaptureRelaxed = 2;  // of a thread's interaction with others' captures
inline constexpr unsigned kCaptureAddDependencies = 0;
inline constexpr unsigned kUserObjectNoDestructorSync = 1;
inline constexpr unsigned kGraphTakesReference = 1;
// Of launchKernel's last argument.
inline void* const kParametersEnd = nullptr;
inline void* const kParameterBuffer = reinterpret_cast<void*>(1);
inline void* const kParameterBytes = reinterpret_cast<void*>(2);

// F(member, symbol, parameters): every function of the driver that we call.
#define NCCLRUN_CUDA_FUNCTIONS(F)                                                                                     \
  F(init, "cuInit", (unsigned))                                                                                       \
  F(driverGetVersion, "cuDriverGetVersion", (int*))                                                                   \
  F(getErrorName, "cuGetErrorName", (Result, const char**))                                                           \
  F(getErrorString, "cuGetErrorString", (Result, const char**))                                                       \
  F(deviceGetCount, "cuDeviceGetCount", (int*))                                                                       \
  F(deviceGet, "cuDeviceGet", (Device*, int))                                                                         \
  F(deviceGetAttribute, "cuDeviceGetAttribute", (int*, int, Device))                                                  \
  F(deviceGetPCIBusId, "cuDeviceGetPCIBusId", (char*, int, Device))                                                   \
  F(deviceCanAccessPeer, "cuDeviceCanAccessPeer", (int*, Device, Device))                                             \
  F(devicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (Context*, Device))                                           \
  F(ctxGetCurrent, "cuCtxGetCurrent", (Context*))                                                                     \
  F(ctxPushCurrent, "cuCtxPushCurrent_v2", (Context))                                                                 \
  F(ctxPopCurrent, "cuCtxPopCurrent_v2", (Context*))                                                                  \
  F(ctxGetDevice, "cuCtxGetDevice", (Device*))                                                                        \
  F(ctxEnablePeerAccess, "cuCtxEnablePeerAccess", (Context, unsigned))                                                \
  F(memAlloc, "cuMemAlloc_v2", (Pointer*, size_t))                                                                    \
  F(memFree, "cuMemFree_v2", (Pointer))                                                                               \
  F(memHostAlloc, "cuMemHostAlloc", (void**, size_t, unsigned))                                                       \
  F(memFreeHost, "cuMemFreeHost", (void*))                                                                            \
  F(memHostRegister, "cuMemHostRegister_v2", (void*, size_t, unsigned))                                               \
  F(memHostUnregister, "cuMemHostUnregister", (void*))                                                                \
  F(memHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", (Pointer*, void*, unsigned))                             \
  F(memsetD8Async, "cuMemsetD8Async", (Pointer, unsigned char, size_t, Stream))                                       \
  F(memcpyAsync, "cuMemcpyAsync", (Pointer, Pointer, size_t, Stream))                                                 \
  F(memcpyRowsAsync, "cuMemcpy2DAsync_v2", (const RowsCopy*, Stream))                                                 \
  F(memGetInfo, "cuMemGetInfo_v2", (size_t*, size_t*))                                                                \
  F(memGetAddressRange, "cuMemGetAddressRange_v2", (Pointer*, size_t*, Pointer))                                      \
  F(memGetHandleForAddressRange, "cuMemGetHandleForAddressRange", (void*, Pointer, size_t, int, unsigned long long))  \
  F(pointerGetAttribute, "cuPointerGetAttribute", (void*, int, Pointer))                                              \
  F(ipcGetMemHandle, "cuIpcGetMemHandle", (IpcHandle*, Pointer))                                                      \
  F(ipcOpenMemHandle, "cuIpcOpenMemHandle_v2", (Pointer*, IpcHandle, unsigned))                                       \
  F(ipcCloseMemHandle, "cuIpcCloseMemHandle", (Pointer))                                                              \
  F(moduleLoadData, "cuModuleLoadData", (Module*, const void*))                                                       \
  F(moduleGetFunction, "cuModuleGetFunction", (Function*, Module, const char*))                                       \
  F(funcGetAttribute, "cuFuncGetAttribute", (int*, int, Function))                                                    \
  F(funcSetAttribute, "cuFuncSetAttribute", (Function, int, int))                                                     \
  F(launchKernel, "cuLaunchKernel",                                                                                   \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**))         \
  F(launchHostFunction, "cuLaunchHostFunc", (Stream, void (*)(void*), void*))                                         \
  F(streamCreate, "cuStreamCreate", (Stream*, unsigned))                                                              \
  F(streamBatchMemoryOperation, "cuStreamBatchMemOp_v2", (Stream, unsigned, const MemoryOperation*, unsigned))        \
  F(streamDestroy, "cuStreamDestroy_v2", (Stream))                                                                    \
  F(streamSynchronize, "cuStreamSynchronize", (Stream))                                                               \
  F(streamWaitEvent, "cuStreamWaitEvent", (Stream, Event, unsigned))                                                  \
  F(streamGetCaptureInfo, "cuStreamGetCaptureInfo_v2", (Stream, int*, uint64_t*, Graph*, const GraphNode**, size_t*)) \
  F(streamUpdateCaptureDependencies, "cuStreamUpdateCaptureDependencies", (Stream, GraphNode*, size_t, unsigned))     \
  F(threadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int*))                                     \
  F(streamGetId, "cuStreamGetId", (Stream, unsigned long long*))                                                      \
  F(streamQuery, "cuStreamQuery", (Stream))                                                                           \
  F(streamBeginCapture, "cuStreamBeginCapture_v2", (Stream, int))                                                     \
  F(streamEndCapture, "cuStreamEndCapture", (Stream, Graph*))                                                         \
  F(graphInstantiate, "cuGraphInstantiateWithFlags", (GraphExec*, Graph, unsigned long long))                         \
  F(graphLaunch, "cuGraphLaunch", (GraphExec, Stream))                                                                \
  F(graphAddEventRecordNode, "cuGraphAddEventRecordNode", (GraphNode*, Graph, const GraphNode*, size_t, Event))       \
  F(graphAddDependencies, "cuGraphAddDependencies", (Graph, const GraphNode*, const GraphNode*, size_t))              \
  F(graphRemoveDependencies, "cuGraphRemoveDependencies", (Graph, const GraphNode*, const GraphNode*, size_t))        \
  F(userObjectCreate, "cuUserObjectCreate", (UserObject*, void*, void (*)(void*), unsigned, unsigned))                \
  F(userObjectRelease, "cuUserObjectRelease", (UserObject, unsigned))                                                 \
  F(graphRetainUserObject, "cuGraphRetainUserObject", (Graph, UserObject, unsigned, unsigned))                        \
  F(graphDestroy, "cuGraphDestroy", (Graph))                                                                          \
  F(graphExecDestroy, "cuGraphExecDestroy", (GraphExec))                                                              \
  F(eventElapsedTime, "cuEventElapsedTime_v2", (float*, Event, Event))                                                \
  F(ctxSetCurrent, "cuCtxSetCurrent", (Context))                                                                      \
  F(eventCreate, "cuEventCreate", (Event*, unsigned))                                                                 \
  F(eventDestroy, "cuEventDestroy_v2", (Event))                                                                       \
  F(eventRecord, "cuEventRecord", (Event, Stream))                                                                    \
  F(eventQuery, "cuEventQuery", (Event))                                                                              \
  F(eventSynchronize, "cuEventSynchronize", (Event))

struct Driver {
#define NCCLRUN_CUDA_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  NCCLRUN_CUDA_FUNCTIONS(NCCLRUN_CUDA_MEMBER)
#undef NCCLRUN_CUDA_MEMBER
};

// The driver, opened and started at the first call; null: there is none, `why` says so in a sentence without its end.
const Driver* driver(std::string& why);

// Number of GPUs that the driver shows this process, also where the driver is too old to be used.
int visibleGpus();

// The driver where it is known to be there.
const Driver& driver();

// What a call of the driver came to: `what` names it.
Status statusOf(Result result, const char* what);

}  // namespace ncclrun::cuda
