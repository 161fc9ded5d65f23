// A stand-in for NVIDIA's driver: libcuda.so.1 with GPUs that are memory and threads of this machine, so that the
// engine runs where there is no GPU. Contexts, streams, events, graphs and memory shared between processes behave as
// the CUDA Driver API reference says; kernels are the engine's own, compiled for this machine (simt), or the same
// algorithms over the same launch parameters by primitives of the stand-in (primitives.h). Those are no test of the
// kernels, but run at any number of channels and threads, where the others would need a stack for each thread.
//
//   NCCLRUN_STAND_IN_GPUS=N      GPUs that there are; 4
//   NCCLRUN_STAND_IN_CHANNELS=N  streams share so many queues, in which what waits holds up what was queued behind it,
//   as
//                                on GPUs with CUDA_DEVICE_MAX_CONNECTIONS; without it each stream has its own
//   NCCLRUN_STAND_IN_CAPABILITY=80  compute capability 8.0; 9.0
//   NCCLRUN_STAND_IN_DMA_BUF=0   no dma-bufs of GPU memory
//   NCCLRUN_STAND_IN_KERNELS=primitives  the stand-in's own kernels
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

// Before the driver's names, which mean the same ones.
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUuserObject_st;

#include "dl/cuda.h"

#define STAND_IN_EXPORT extern "C" __attribute__((visibility("default")))

namespace stand_in {

using ncclrun::cuda::Pointer;
using ncclrun::cuda::Result;

inline constexpr Result kInvalidValue = 1;
inline constexpr Result kInvalidHandle = 400;
inline constexpr Result kNotFound = 500;

// What a queue runs, in order. May wait.
using Step = std::function<void()>;
// What a node of a graph is each time that the graph is launched.
using Launched = std::function<Step()>;

class Queue {
 public:
  Queue();
  void push(Step step);
  // How many steps were pushed, and whether so many have ended.
  uint64_t pushed();
  bool ended(uint64_t count);
  void await(uint64_t count);

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Step> steps_;
  uint64_t pushed_ = 0, ended_ = 0;
};

}  // namespace stand_in

struct CUctx_st {
  int device;
};

struct CUevent_st {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, reached = 0;  // the latest record, and the latest whose turn has come
  double milliseconds = 0;             // when
  // Recorded in a capture: what stands before it.
  CUgraph_st* graph = nullptr;
  std::vector<CUgraphNode_st*> after;
};

// What graphs hold on to; ends with the last of them.
struct CUuserObject_st {
  void* argument;
  void (*end)(void*);
  ~CUuserObject_st();
};

struct CUgraphNode_st {
  stand_in::Launched launched;
  std::vector<CUgraphNode_st*> after;
};

struct CUgraph_st {
  uint64_t id;
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  // in an order in which they may run
  std::vector<CUstream_st*> streams;                   // that are captured into it
  bool invalid = false;                                // a stream of it was asked what no capture allows
  std::vector<std::shared_ptr<CUuserObject_st>> held = {};
};

struct CUgraphExec_st {
  std::vector<stand_in::Launched> steps;
  std::vector<std::shared_ptr<CUuserObject_st>> held;
};

struct CUstream_st {
  std::shared_ptr<stand_in::Queue> queue;
  unsigned long long id;
  uint64_t last = 0;  // number of its latest step in the queue
  // While it is captured.
  CUgraph_st* graph = nullptr;
  std::vector<CUgraphNode_st*> after;
};

namespace stand_in {

// The stream behind a handle: the current GPU's own for null and 0x1 (CU_STREAM_LEGACY), the thread's for 0x2
// (CU_STREAM_PER_THREAD). Null: there is none, or it was destroyed.
CUstream_st* find(ncclrun::cuda::Stream handle);

// The step comes when the stream has come to it; into the graph that it is captured into, or the queue.
Result enqueue(ncclrun::cuda::Stream handle, const Step& step);
void enqueueLaunched(CUstream_st* stream, const Launched& launched);
CUgraphNode_st* append(CUgraph_st& graph, std::vector<CUgraphNode_st*> after, Launched launched);

// Of the calling thread's current context.
int currentDevice();

// Ends when `met` says so: by polling, since other processes change what is looked at.
// As NVIDIA's driver before it frees memory. Not by a thread that carries out what is queued.
void awaitIdleGpu();
void awaitUntil(const std::function<bool()>& met);

}  // namespace stand_in
