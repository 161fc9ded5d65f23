// The main loop of a block: it runs the launch's items one after the other, each by the algorithm of its routine.
#pragma once
#include "algorithm/collnet.h"
#include "algorithm/direct.h"
#include "algorithm/rail.h"
#include "algorithm/ring.h"
#include "algorithm/send_receive.h"
#include "algorithm/tree.h"
#include "cuda/kernels/primitives.cuh"
#include "cuda/kernels/recording.cuh"
#include "cuda/kernels/single_step.cuh"
#include "cuda/kernels/typed_ops.cuh"

namespace ncclrun::cuda {

__device__ __forceinline__ Work workOf(const Launch& launch, const Item& item, uint32_t block, uint32_t channel,
                                       uint32_t ringIndex, bool isLL) {
  Work work{};
  work.send = item.send;
  work.receive = item.receive;
  work.count = item.count;
  work.elementBytes = launch.elementBytes;
  work.chunk = item.chunk;
  work.grain = item.grain;
  work.step = item.step;
  work.isLL = isLL;
  work.block = block;
  work.blocks = item.blocks;
  work.rank = launch.rank;
  work.ranks = launch.ranks;
  work.ringIndex = ringIndex;
  work.root = item.root;
  work.children = item.children;
  work.ring = launch.rings + channel * launch.ranks;
  work.hosts = launch.hosts;
  work.host = launch.host;
  work.locals = launch.locals;
  work.local = launch.local;
  work.byHost = launch.byHost;
  return work;
}

template <class P>
__device__ void pull(P& p, const Work& w) {
  p.pull(w);
}

// Each algorithm is a function of its own, so that its register use does not depend on the others.
#define NCCLRUN_ROUTINE(algorithm)                                       \
  template <class P>                                                     \
  __device__ __noinline__ void algorithm##Routine(P& p, const Work& w) { \
    algorithm(p, w);                                                     \
  }
NCCLRUN_ROUTINE(directOneShotAllReduce)
NCCLRUN_ROUTINE(directTwoShotAllReduce)
NCCLRUN_ROUTINE(ringAllReduce)
NCCLRUN_ROUTINE(treeAllReduce)
NCCLRUN_ROUTINE(railAllReduce)
NCCLRUN_ROUTINE(collnetAllReduce)
NCCLRUN_ROUTINE(collnetChainAllReduce)
NCCLRUN_ROUTINE(directReduceScatter)
NCCLRUN_ROUTINE(ringReduceScatter)
NCCLRUN_ROUTINE(railReduceScatter)
NCCLRUN_ROUTINE(directReduce)
NCCLRUN_ROUTINE(ringReduce)
NCCLRUN_ROUTINE(treeReduce)
NCCLRUN_ROUTINE(directAllGather)
NCCLRUN_ROUTINE(ringAllGather)
NCCLRUN_ROUTINE(railAllGather)
NCCLRUN_ROUTINE(directBroadcast)
NCCLRUN_ROUTINE(ringBroadcast)
NCCLRUN_ROUTINE(treeBroadcast)
NCCLRUN_ROUTINE(directAllToAll)
NCCLRUN_ROUTINE(directGather)
NCCLRUN_ROUTINE(directScatter)
NCCLRUN_ROUTINE(sendTo)
NCCLRUN_ROUTINE(receiveFrom)
NCCLRUN_ROUTINE(exchangeInPlace)
NCCLRUN_ROUTINE(pull)
#undef NCCLRUN_ROUTINE

// A function of its own, so that kernels of LL128 are compiled as if a rail were all.
template <class P>
__device__ __noinline__ void allReduceBetweenHosts(P& p, const Work& w, Routine routine) {
  if constexpr (P::kHasCollnet) {
    if (routine == Routine::allReduceCollnet) return collnetAllReduceRoutine(p, w);
    if (routine == Routine::allReduceCollnetChain) return collnetChainAllReduceRoutine(p, w);
  }
  railAllReduceRoutine(p, w);
}

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
    case Routine::allReduceRail:
    case Routine::allReduceCollnet:
    case Routine::allReduceCollnetChain:
      return allReduceBetweenHosts(p, w, routine);
    case Routine::reduceScatterDirect:
      return directReduceScatterRoutine(p, w);
    case Routine::reduceScatterRing:
      return ringReduceScatterRoutine(p, w);
    case Routine::reduceScatterRail:
      return railReduceScatterRoutine(p, w);
    case Routine::reduceDirect:
      return directReduceRoutine(p, w);
    case Routine::reduceRing:
      return ringReduceRoutine(p, w);
    case Routine::reduceTree:
      return treeReduceRoutine(p, w);
    case Routine::reducePulled:
      return pullRoutine(p, w);
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
    case Routine::allGatherRail:
      return railAllGatherRoutine(p, w);
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
    case Routine::exchange:
      return exchangeInPlaceRoutine(p, w);
    default:
      return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  }
}

// All routines of a module: run(primitives, work, routine).
struct Reduce {
  static constexpr bool kInline = false;
  static __device__ void run(auto& p, const Work& w, Routine routine) { reduce(p, w, routine); }
};
struct Spread {
  static constexpr bool kInline = false;
  static __device__ void run(auto& p, const Work& w, Routine routine) { spread(p, w, routine); }
};
// The latency-critical routines, each with a kernel of its own. kOneWay: a rank does not both send to a peer and
// receive from it.
#define NCCLRUN_QUICK(Name, algorithm, isOneWay)                                     \
  struct Name {                                                                      \
    static constexpr bool kInline = true;                                            \
    static constexpr bool kOneWay = isOneWay;                                        \
    static __device__ void run(auto& p, const Work& w, Routine) { algorithm(p, w); } \
  };
NCCLRUN_QUICK(OneShot, directOneShotAllReduce, false)
NCCLRUN_QUICK(TwoShot, directTwoShotAllReduce, false)
NCCLRUN_QUICK(ReduceScatter, directReduceScatter, false)
NCCLRUN_QUICK(ReduceToRoot, directReduce, true)
NCCLRUN_QUICK(AllGather, directAllGather, false)
NCCLRUN_QUICK(Broadcast, directBroadcast, true)
NCCLRUN_QUICK(AllToAll, directAllToAll, false)
NCCLRUN_QUICK(Gather, directGather, true)
NCCLRUN_QUICK(Scatter, directScatter, true)
#undef NCCLRUN_QUICK
struct SendReceive {
  static constexpr bool kInline = true;
  static constexpr bool kOneWay = true;
  static __device__ void run(auto& p, const Work& w, Routine routine) {
    if (routine == Routine::send) return sendTo(p, w);
    if (routine == Routine::receive) return receiveFrom(p, w);
    p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  }
};

// Runs part `block` of one item.
template <class Protocol, class Routines>
__device__ __forceinline__ void runItem(const Launch& launch, Connections& connections, const Item& item,
                                        uint32_t block) {
  const uint32_t channel = (item.firstChannel + block) % launch.slots.channels;
  const uint32_t ringIndex = item.usesRing ? launch.ringPositions[channel].index : 0;
  const ConnectionStore<Protocol::kProtocol> store(launch, item, channel);
  store.load(connections);
  __syncthreads();
  Primitives<Protocol, Routines::kInline> primitives(launch, connections, item.receiveCount, item.sendCount);
  const Work work = workOf(launch, item, block, channel, ringIndex, Protocol::kProtocol == 1);
  Routines::run(primitives, work, item.routine);
  primitives.finish();
  __syncthreads();
  store.store(connections);
  __syncthreads();
}
template <class Protocol, class Routines>
__device__ __noinline__ void runItemApart(const Launch& launch, Connections& connections, const Item& item,
                                          uint32_t block) {
  runItem<Protocol, Routines>(launch, connections, item, block);
}

// run(ends, item, part): each part of an item that the calling block does.
__device__ __forceinline__ void forEachItem(const Launch& launch, auto&& run) {
  NCCLRUN_SHARED(Connections, connections);
  if (threadIdx.x == 0) connections.aborted = connections.reported = false;
  clearRecord(connections);
  for (uint32_t i = 0; i < launch.itemCount; i++) {
    const Item& item = launch.items[i];
    const uint32_t worker = (blockIdx.x + gridDim.x - item.firstBlock) % gridDim.x;
    if (worker >= item.workers) continue;
    nextRecord(launch, item, worker == 0, connections);
#pragma unroll 1
    for (uint32_t part = worker; part < item.blocks; part += item.workers) run(connections, item, part);
  }
  lastRecord(connections);
  if (threadIdx.x == 0) endBlock(launch, connections);
}

template <class Protocol, class Routines>
__device__ __forceinline__ void runBlock(const Launch& launch) {
  forEachItem(launch, [&](Connections& connections, const Item& item, uint32_t block) {
    if constexpr (Routines::kInline) {
      runItem<Protocol, Routines>(launch, connections, item, block);
    } else {
      runItemApart<Protocol, Routines>(launch, connections, item, block);
    }
  });
}
// The item of the calling block in a single-step launch. An exchange has one item, and the launch does its parts from
// firstBlock on; other routines have several items, each with one block for each part.
template <class Routines>
__device__ __forceinline__ const Item& singleStepItem(const Launch& launch) {
  uint32_t i = 0;
  if constexpr (Routines::kOneWay) {
    while (blockIdx.x - launch.items[i].firstBlock >= launch.items[i].blocks) i++;
  }
  return launch.items[i];
}
// Runs the calling block of a single-step launch. (Each connection's lane stores the state back itself.)
template <class Protocol, class Routines>
__device__ __forceinline__ void runSingleStep(const Launch& launch) {
  NCCLRUN_SHARED(SingleStepConnections, connections);
  const Item& item = singleStepItem<Routines>(launch);
  const uint32_t part = Routines::kOneWay ? blockIdx.x - item.firstBlock : blockIdx.x + item.firstBlock;
  const uint32_t channel = Routines::kOneWay ? item.firstChannel + part : part;
  clearRecord(connections);
  if (part == 0) beginRecord(launch, item, connections);
  Primitives<Protocol, true> primitives(launch, connections, item.receiveCount, item.sendCount, item, channel);
  Routines::run(primitives, workOf(launch, item, part, 0, 0, Protocol::kProtocol == 1), item.routine);
  primitives.finish();
  endRecord(connections);
  if (threadIdx.x == 0) endBlock(launch, connections);
}
// Runs items of several protocols.
template <class Ops, class Routines>
__device__ __forceinline__ void runMixedBlock(const Launch& launch) {
  forEachItem(launch, [&](Connections& connections, const Item& item, uint32_t block) {
    if (item.protocol == Simple<Ops>::kProtocol)
      return runItemApart<Simple<Ops>, Routines>(launch, connections, item, block);
    if (item.protocol == LL<Ops>::kProtocol) return runItemApart<LL<Ops>, Routines>(launch, connections, item, block);
    runItemApart<LL128<Ops>, Routines>(launch, connections, item, block);
  });
}

}  // namespace ncclrun::cuda

// Kernels of a module (kernels.cc knows their names): one with all routines for each protocol, and kernels of single
// routines under LL and LL128. Grid: up to the plan's channels, for sends and receives times the connections; block: a
// multiple of 32 threads, 64 to 512.
#define NCCLRUN_KERNEL(Name, Protocol, Routines, ...)                                               \
  extern "C" __global__ void __launch_bounds__(512, 1)                                              \
      ncclrun##Protocol##Name(NCCLRUN_PARAMETER(ncclrun::cuda::Launch) launch) {                    \
    ncclrun::cuda::runBlock<ncclrun::cuda::Protocol<__VA_ARGS__>, ncclrun::cuda::Routines>(launch); \
  }
#define NCCLRUN_ALL_ROUTINES(Routines, ...)       \
  NCCLRUN_KERNEL(, Simple, Routines, __VA_ARGS__) \
  NCCLRUN_KERNEL(, LL, Routines, __VA_ARGS__)     \
  NCCLRUN_KERNEL(, LL128, Routines, __VA_ARGS__)
#define NCCLRUN_ROUTINE_ALONE(Routine, ...)         \
  NCCLRUN_KERNEL(Routine, LL, Routine, __VA_ARGS__) \
  NCCLRUN_KERNEL(Routine, LL128, Routine, __VA_ARGS__)
// Kernels for single-step launches. Grid: the items' blocks.
#define NCCLRUN_SINGLE_STEP_KERNEL(Name, Protocol, Routine, ...)                             \
  extern "C" __global__ void __launch_bounds__(512, 1)                                       \
      ncclrun##Protocol##SingleStep##Name(NCCLRUN_PARAMETER(ncclrun::cuda::Launch) launch) { \
    using Steps = ncclrun::cuda::SingleStepVariant<ncclrun::cuda::Routine::kOneWay>;         \
    using Lines = ncclrun::cuda::Protocol<__VA_ARGS__, Steps::Of>;                           \
    ncclrun::cuda::runSingleStep<Lines, ncclrun::cuda::Routine>(launch);                     \
  }
#define NCCLRUN_SINGLE_STEP_KERNELS(Name, Routine, ...)      \
  NCCLRUN_SINGLE_STEP_KERNEL(Name, LL, Routine, __VA_ARGS__) \
  NCCLRUN_SINGLE_STEP_KERNEL(Name, LL128, Routine, __VA_ARGS__)
// Kernels for the types of a module. Of the single routines only the one-shot all-reduce exists for all operators: the
// others would take as long to compile as for sums, and are seldom wanted.
#define NCCLRUN_REDUCTIONS(...)               \
  NCCLRUN_ALL_ROUTINES(Reduce, __VA_ARGS__)   \
  NCCLRUN_ROUTINE_ALONE(OneShot, __VA_ARGS__) \
  NCCLRUN_SINGLE_STEP_KERNELS(OneShot, OneShot, __VA_ARGS__)
// Kernels for sums of one type (of integers: the unsigned one).
#define NCCLRUN_SUM_ALONE(Which, Routine, Type)                             \
  NCCLRUN_KERNEL(Routine##Which, LL, Routine, ncclrun::cuda::Sums<Type>)    \
  NCCLRUN_KERNEL(Routine##Which, LL128, Routine, ncclrun::cuda::Sums<Type>) \
  NCCLRUN_SINGLE_STEP_KERNELS(Routine##Which, Routine, ncclrun::cuda::Sums<Type>)
#define NCCLRUN_SUMS(Which, Type)               \
  NCCLRUN_SUM_ALONE(Which, OneShot, Type)       \
  NCCLRUN_SUM_ALONE(Which, TwoShot, Type)       \
  NCCLRUN_SUM_ALONE(Which, ReduceScatter, Type) \
  NCCLRUN_SINGLE_STEP_KERNELS(ReduceToRoot##Which, ReduceToRoot, ncclrun::cuda::Sums<Type>)
