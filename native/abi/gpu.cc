// ncclrun.h's GPUs: the driver's functions under our errors.
struct CUevent_st;  // before the driver's names, which mean the same one

#include "dl/gpu.h"

#include "abi/call.h"
#include "ncclrun.h"

using namespace ncclrun;

struct ncclrunGpuGraph {
  cuda::GraphExec executable;
};

namespace {

// body(driver), which gives the driver's answer.
template <class Body>
ncclResult_t withDriver(const char* function, Body&& body) noexcept {
  return call(function, [&] {
    std::string why;
    const cuda::Driver* const driver = cuda::driver(why);
    if (driver == nullptr) return fail(ncclInvalidUsage, "%s: %s", function, why.c_str());
    const Status status = cuda::statusOf(body(*driver), function);
    return status.ok() ? ncclSuccess : fail(status);
  });
}

cuda::Stream raw(cudaStream_t stream) { return stream; }
cuda::Pointer pointer(const void* address) { return reinterpret_cast<cuda::Pointer>(address); }

}  // namespace

NCCLRUN_EXPORT ncclResult_t ncclrunGpuCount(int* count) {
  return call("ncclrunGpuCount", [&] {
    if (const auto bad = checkPointer("ncclrunGpuCount", "count", count); bad != ncclSuccess) return bad;
    *count = 0;
    std::string why;
    if (const cuda::Driver* const driver = cuda::driver(why); driver != nullptr) {
      driver->deviceGetCount(count);
    } else {
      fail(ncclSuccess, "ncclrunGpuCount: %s", why.c_str());
    }
    return ncclSuccess;
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuUse(int device) {
  return withDriver("ncclrunGpuUse", [&](const cuda::Driver& driver) {
    cuda::Device handle = 0;
    cuda::Context context = nullptr;
    cuda::Result result = driver.deviceGet(&handle, device);
    if (result == cuda::kSuccess) result = driver.devicePrimaryCtxRetain(&context, handle);
    return result == cuda::kSuccess ? driver.ctxSetCurrent(context) : result;
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuHostAlloc(void** memory, size_t bytes) {
  if (const auto bad = checkPointer("ncclrunGpuHostAlloc", "memory", memory); bad != ncclSuccess) return bad;
  *memory = nullptr;
  return withDriver("ncclrunGpuHostAlloc", [&](const cuda::Driver& driver) {
    return driver.memHostAlloc(memory, bytes, cuda::kHostPortable);
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuHostFree(void* memory) {
  if (memory == nullptr) return ncclSuccess;
  return withDriver("ncclrunGpuHostFree", [&](const cuda::Driver& driver) { return driver.memFreeHost(memory); });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuCopy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return ncclSuccess;
  return withDriver("ncclrunGpuCopy", [&](const cuda::Driver& driver) {
    return driver.memcpyAsync(pointer(to), pointer(from), bytes, raw(stream));
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuSet(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return ncclSuccess;
  return withDriver("ncclrunGpuSet", [&](const cuda::Driver& driver) {
    return driver.memsetD8Async(pointer(to), static_cast<unsigned char>(value), bytes, raw(stream));
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuStreamCreate(cudaStream_t* stream) {
  if (const auto bad = checkPointer("ncclrunGpuStreamCreate", "stream", stream); bad != ncclSuccess) return bad;
  return withDriver("ncclrunGpuStreamCreate",
                    [&](const cuda::Driver& driver) { return driver.streamCreate(stream, cuda::kStreamNonBlocking); });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuStreamDestroy(cudaStream_t stream) {
  return withDriver("ncclrunGpuStreamDestroy",
                    [&](const cuda::Driver& driver) { return driver.streamDestroy(raw(stream)); });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuStreamSynchronize(cudaStream_t stream) {
  return withDriver("ncclrunGpuStreamSynchronize",
                    [&](const cuda::Driver& driver) { return driver.streamSynchronize(raw(stream)); });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuStreamQuery(cudaStream_t stream) {
  bool underWay = false;
  const ncclResult_t result = withDriver("ncclrunGpuStreamQuery", [&](const cuda::Driver& driver) {
    const cuda::Result answer = driver.streamQuery(raw(stream));
    underWay = answer == cuda::kNotReady;
    return underWay ? cuda::kSuccess : answer;
  });
  return underWay ? ncclInProgress : result;
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuStreamCallback(cudaStream_t stream, void (*function)(void*), void* argument) {
  return withDriver("ncclrunGpuStreamCallback", [&](const cuda::Driver& driver) {
    return driver.launchHostFunction(raw(stream), function, argument);
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuEventCreate(ncclrunGpuEvent_t* event) {
  if (const auto bad = checkPointer("ncclrunGpuEventCreate", "event", event); bad != ncclSuccess) return bad;
  return withDriver("ncclrunGpuEventCreate", [&](const cuda::Driver& driver) { return driver.eventCreate(event, 0); });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuEventDestroy(ncclrunGpuEvent_t event) {
  return withDriver("ncclrunGpuEventDestroy", [&](const cuda::Driver& driver) { return driver.eventDestroy(event); });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuEventRecord(ncclrunGpuEvent_t event, cudaStream_t stream) {
  return withDriver("ncclrunGpuEventRecord",
                    [&](const cuda::Driver& driver) { return driver.eventRecord(event, raw(stream)); });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuEventWait(cudaStream_t stream, ncclrunGpuEvent_t event) {
  return withDriver("ncclrunGpuEventWait",
                    [&](const cuda::Driver& driver) { return driver.streamWaitEvent(raw(stream), event, 0); });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuEventElapsed(ncclrunGpuEvent_t from, ncclrunGpuEvent_t to, float* milliseconds) {
  if (const auto bad = checkPointer("ncclrunGpuEventElapsed", "milliseconds", milliseconds); bad != ncclSuccess)
    return bad;
  return withDriver("ncclrunGpuEventElapsed",
                    [&](const cuda::Driver& driver) { return driver.eventElapsedTime(milliseconds, from, to); });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuCaptureBegin(cudaStream_t stream) {
  // Relaxed: another graph may be made meanwhile, which takes memory.
  return withDriver("ncclrunGpuCaptureBegin", [&](const cuda::Driver& driver) {
    return driver.streamBeginCapture(raw(stream), cuda::kCaptureRelaxed);
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuCaptureEnd(cudaStream_t stream, ncclrunGpuGraph_t* graph) {
  if (const auto bad = checkPointer("ncclrunGpuCaptureEnd", "graph", graph); bad != ncclSuccess) return bad;
  *graph = nullptr;
  return withDriver("ncclrunGpuCaptureEnd", [&](const cuda::Driver& driver) {
    cuda::Graph captured = nullptr;
    cuda::GraphExec executable = nullptr;
    if (const cuda::Result ended = driver.streamEndCapture(raw(stream), &captured); ended != cuda::kSuccess)
      return ended;
    const cuda::Result made = driver.graphInstantiate(&executable, captured, 0);
    driver.graphDestroy(captured);
    if (made == cuda::kSuccess) *graph = new ncclrunGpuGraph{executable};
    return made;
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuGraphLaunch(ncclrunGpuGraph_t graph, cudaStream_t stream) {
  if (const auto bad = checkPointer("ncclrunGpuGraphLaunch", "graph", graph); bad != ncclSuccess) return bad;
  return withDriver("ncclrunGpuGraphLaunch",
                    [&](const cuda::Driver& driver) { return driver.graphLaunch(graph->executable, raw(stream)); });
}

NCCLRUN_EXPORT ncclResult_t ncclrunGpuGraphDestroy(ncclrunGpuGraph_t graph) {
  if (graph == nullptr) return ncclSuccess;
  const ncclResult_t result = withDriver(
      "ncclrunGpuGraphDestroy", [&](const cuda::Driver& driver) { return driver.graphExecDestroy(graph->executable); });
  delete graph;
  return result;
}
