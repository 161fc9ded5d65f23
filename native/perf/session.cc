#include "session.h"

#include <cstdlib>
#include <cstring>
#include <exception>

namespace {

int numberFrom(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

int gpuCount() {
  int count = 0;
  must(ncclrunGpuCount(&count));
  return count;
}

bool choosesGpu(const std::string& device) {
  if (device == "host") return false;
  if (device == "cuda") return true;
  if (device != "auto") throw std::invalid_argument("unknown device \"" + device + "\"; known: auto, cuda, host");
  constexpr int kMaxGpus = 16;  // of one host, that the engine connects
  const int ranks = numberFrom("LOCAL_WORLD_SIZE", 1);
  return ranks <= kMaxGpus && ranks <= gpuCount();
}

ncclrunStream_t hostStream(cudaStream_t stream) { return reinterpret_cast<ncclrunStream_t>(stream); }

}  // namespace

void must(ncclResult_t result) {
  if (result != ncclSuccess)
    throw EngineError(std::string(ncclGetErrorString(result)) + ": " + ncclGetLastError(nullptr));
}

int ranksOfJob() {
  ncclUniqueId id;
  int ranks, rank;
  must(ncclrunGetJob(&id, &ranks, &rank));
  return ranks;
}

Session::Session(const std::string& device) : isGpu_(choosesGpu(device)) {
  if (isGpu_) {
    const int gpus = gpuCount();
    if (gpus == 0) throw EngineError(std::string(ncclGetLastError(nullptr)) + "; without GPUs: --device host");
    // Where GPUs are isolated, each rank sees its own as number 0; that two ranks have the same one the engine says.
    must(ncclrunGpuUse(numberFrom("LOCAL_RANK", 0) % gpus));
    must(ncclrunGpuStreamCreate(&stream_));
    must(ncclrunMemAlloc(&scalar_, sizeof(double), ncclrunDeviceCuda));
  } else {
    ncclrunStream_t stream;
    must(ncclrunStreamCreate(&stream));
    stream_ = reinterpret_cast<cudaStream_t>(stream);
  }
  join();
}

void Session::join() {
  ncclUniqueId id;
  must(ncclrunGetJob(&id, &ranks_, &rank_));
  must(ncclrunCommBegin(&comm_, ranks_, id, rank_, isGpu_ ? ncclrunDeviceCuda : ncclrunDeviceHost));
  must(ncclrunCommWait(comm_));
  ncclrunCommInfo info;
  must(ncclrunCommGetInfo(comm_, &info));
  hosts_ = static_cast<int>(info.hosts);
}

Session::~Session() {
  if (std::uncaught_exceptions() > 0) {
    ncclCommAbort(comm_);  // the others must not wait for us
  } else {
    ncclCommDestroy(comm_);
  }
  if (isGpu_) {
    ncclMemFree(scalar_);
    ncclrunGpuStreamDestroy(stream_);
  } else {
    ncclrunStreamDestroy(hostStream(stream_));
  }
}

void Session::synchronize() {
  if (!isGpu_) return must(ncclrunStreamSynchronize(hostStream(stream_)));
  must(ncclrunGpuStreamSynchronize(stream_));
  // A kernel that was ended because a peer is lost leaves its stream without an error.
  ncclResult_t failure = ncclSuccess;
  must(ncclCommGetAsyncError(comm_, &failure));
  must(failure);
}

void Session::barrier() {
  must(ncclrunBarrier(comm_, hostStream(stream_)));
  synchronize();
}

void Session::copy(void* to, const void* from, size_t bytes) {
  if (!isGpu_) {
    std::memcpy(to, from, bytes);
    return;
  }
  must(ncclrunGpuCopy(to, from, bytes, stream_));
  must(ncclrunGpuStreamSynchronize(stream_));
}

void Session::clear(void* memory, size_t bytes) {
  if (!isGpu_) {
    std::memset(memory, 0, bytes);
    return;
  }
  must(ncclrunGpuSet(memory, 0, bytes, stream_));
  must(ncclrunGpuStreamSynchronize(stream_));
}

void Session::sumInPlace(void* value, ncclDataType_t type) {
  constexpr size_t kBytes = sizeof(double);
  static_assert(kBytes == sizeof(int64_t));
  void* const position = isGpu_ ? scalar_ : value;
  if (isGpu_) copy(scalar_, value, kBytes);
  must(ncclAllReduce(position, position, 1, type, ncclSum, comm_, stream_));
  synchronize();
  if (isGpu_) copy(value, scalar_, kBytes);
}

double Session::sum(double value) {
  sumInPlace(&value, ncclFloat64);
  return value;
}

int64_t Session::sum(int64_t value) {
  sumInPlace(&value, ncclInt64);
  return value;
}
