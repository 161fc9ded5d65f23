// What a block of a launch does: its items one after the other, each by the algorithm of its routine.
#pragma once
#include "algorithm/direct.h"
#include "algorithm/ring.h"
#include "algorithm/send_receive.h"
#include "algorithm/tree.h"
#include "device/cuda/primitives.cuh"

namespace ncclrun::cuda {

__device__ __forceinline__ Work workOf(const Launch& launch, const Item& item, uint32_t block, uint32_t channel,
                                       RingPlace place, bool lowLatency) {
  Work work{};
  work.send = item.send;
  work.receive = item.receive;
  work.count = item.count;
  work.elementBytes = launch.elementBytes;
  work.chunk = item.chunk;
  work.grain = item.grain;
  work.lowLatency = lowLatency;
  work.block = block;
  work.blocks = item.blocks;
  work.rank = launch.rank;
  work.ranks = launch.ranks;
  work.place = place.place;
  work.root = item.root;
  work.children = item.children;
  work.ring = launch.rings + channel * launch.ranks;
  return work;
}

// Each on its own: the registers of one should not depend on the others.
#define NCCLRUN_ROUTINE(algorithm)                                       \
  template <class P>                                                     \
  __device__ __noinline__ void algorithm##Routine(P& p, const Work& w) { \
    algorithm(p, w);                                                     \
  }
NCCLRUN_ROUTINE(directOneShotAllReduce)
NCCLRUN_ROUTINE(directTwoShotAllReduce)
NCCLRUN_ROUTINE(ringAllReduce)
NCCLRUN_ROUTINE(treeAllReduce)
NCCLRUN_ROUTINE(directReduceScatter)
NCCLRUN_ROUTINE(ringReduceScatter)
NCCLRUN_ROUTINE(directReduce)
NCCLRUN_ROUTINE(ringReduce)
NCCLRUN_ROUTINE(treeReduce)
NCCLRUN_ROUTINE(directAllGather)
NCCLRUN_ROUTINE(ringAllGather)
NCCLRUN_ROUTINE(directBroadcast)
NCCLRUN_ROUTINE(ringBroadcast)
NCCLRUN_ROUTINE(treeBroadcast)
NCCLRUN_ROUTINE(directAllToAll)
NCCLRUN_ROUTINE(directGather)
NCCLRUN_ROUTINE(directScatter)
NCCLRUN_ROUTINE(sendTo)
NCCLRUN_ROUTINE(receiveFrom)
NCCLRUN_ROUTINE(flatBarrier)
#undef NCCLRUN_ROUTINE

template <class P>
__device__ __forceinline__ void reduce(P& p, const Work& w, Routine routine) {
  switch (routine) {
    case Routine::allReduceOneShot:
      return directOneShotAllReduceRoutine(p, w);
    case Routine::allReduceTwoShot:
      return directTwoShotAllReduceRoutine(p, w);
    case Routine::allReduceRing:
      return ringAllReduceRoutine(p, w);
    case Routine::allReduceTree:
      return treeAllReduceRoutine(p, w);
    case Routine::reduceScatterDirect:
      return directReduceScatterRoutine(p, w);
    case Routine::reduceScatterRing:
      return ringReduceScatterRoutine(p, w);
    case Routine::reduceDirect:
      return directReduceRoutine(p, w);
    case Routine::reduceRing:
      return ringReduceRoutine(p, w);
    case Routine::reduceTree:
      return treeReduceRoutine(p, w);
    default:
      return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  }
}

template <class P>
__device__ __forceinline__ void spread(P& p, const Work& w, Routine routine) {
  switch (routine) {
    case Routine::allGatherDirect:
      return directAllGatherRoutine(p, w);
    case Routine::allGatherRing:
      return ringAllGatherRoutine(p, w);
    case Routine::broadcastDirect:
      return directBroadcastRoutine(p, w);
    case Routine::broadcastRing:
      return ringBroadcastRoutine(p, w);
    case Routine::broadcastTree:
      return treeBroadcastRoutine(p, w);
    case Routine::allToAll:
      return directAllToAllRoutine(p, w);
    case Routine::gather:
      return directGatherRoutine(p, w);
    case Routine::scatter:
      return directScatterRoutine(p, w);
    case Routine::send:
      return sendToRoutine(p, w);
    case Routine::receive:
      return receiveFromRoutine(p, w);
    case Routine::barrier:
      return flatBarrierRoutine(p, w);
    default:
      return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  }
}

template <class Protocol, class AllKinds>
__device__ __forceinline__ void runBlock(const Launch& launch) {
  __shared__ Ends ends;
  if (threadIdx.x == 0) ends.aborted = false;
  for (uint32_t i = 0; i < launch.itemCount; i++) {
    const Item& item = launch.items[i];
    const uint32_t block = (blockIdx.x + gridDim.x - item.firstBlock) % gridDim.x;
    if (block >= item.blocks) continue;
    const uint32_t channel = (item.firstChannel + block) % launch.channels;
    const RingPlace place = launch.places[channel];
    const EndStore<Protocol::kProtocol> store(launch, item, channel, place);
    store.load(ends);
    __syncthreads();
    Primitives<Protocol, AllKinds> primitives(launch, ends, item.receiveCount, item.sendCount);
    const Work work = workOf(launch, item, block, channel, place, Protocol::kProtocol == 1);
    if constexpr (AllKinds::kReduces) {
      reduce(primitives, work, item.routine);
    } else {
      spread(primitives, work, item.routine);
    }
    primitives.finish();
    __syncthreads();
    store.store(ends);
    __syncthreads();
  }
}

}  // namespace ncclrun::cuda

// The kernels of a module, one for each protocol. Grid: up to the plan's channels, or of sends and receives those times
// connections; block: a multiple of 32 threads, 64 to 512.
#define NCCLRUN_KERNEL(Protocol, ...)                                           \
  extern "C" __global__ void __launch_bounds__(512, 1)                          \
      ncclrun##Protocol(const __grid_constant__ ncclrun::cuda::Launch launch) { \
    ncclrun::cuda::runBlock<ncclrun::cuda::Protocol, __VA_ARGS__>(launch);      \
  }
#define NCCLRUN_MODULE(...)            \
  NCCLRUN_KERNEL(Simple, __VA_ARGS__)  \
  NCCLRUN_KERNEL(Lines64, __VA_ARGS__) \
  NCCLRUN_KERNEL(Lines128, __VA_ARGS__)
