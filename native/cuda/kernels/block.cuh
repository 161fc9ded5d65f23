// What a block of a launch does: its items one after the other, each by the algorithm of its routine.
#pragma once
#include "algorithm/direct.h"
#include "algorithm/ring.h"
#include "algorithm/send_receive.h"
#include "algorithm/tree.h"
#include "cuda/kernels/kinds.cuh"
#include "cuda/kernels/one_turn.cuh"
#include "cuda/kernels/primitives.cuh"

namespace ncclrun::cuda {

__device__ __forceinline__ Work workOf(const Launch& launch, const Item& item, uint32_t block, uint32_t channel,
                                       uint32_t place, bool lowLatency) {
  Work work{};
  work.send = item.send;
  work.receive = item.receive;
  work.count = item.count;
  work.elementBytes = launch.elementBytes;
  work.chunk = item.chunk;
  work.grain = item.grain;
  work.step = item.step;
  work.lowLatency = lowLatency;
  work.block = block;
  work.blocks = item.blocks;
  work.rank = launch.rank;
  work.ranks = launch.ranks;
  work.place = place;
  work.root = item.root;
  work.children = item.children;
  work.ring = launch.rings + channel * launch.ranks;
  return work;
}

template <class P>
__device__ void pull(P& p, const Work& w) {
  p.pull(w);
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
NCCLRUN_ROUTINE(pull)
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
// Those whose time counts most, each by itself. kOneWay: a rank does not send to a peer what it receives from it.
#define NCCLRUN_QUICK(Name, algorithm, isOneWay)                                     \
  struct Name {                                                                      \
    static constexpr bool kInline = true;                                            \
    static constexpr bool kOneWay = isOneWay;                                        \
    static __device__ void run(auto& p, const Work& w, Routine) { algorithm(p, w); } \
  };
NCCLRUN_QUICK(OneShot, directOneShotAllReduce, false)
NCCLRUN_QUICK(TwoShot, directTwoShotAllReduce, false)
NCCLRUN_QUICK(Scattering, directReduceScatter, false)
NCCLRUN_QUICK(Reducing, directReduce, true)
NCCLRUN_QUICK(Gathering, directAllGather, false)
NCCLRUN_QUICK(Broadcasting, directBroadcast, true)
NCCLRUN_QUICK(Exchanging, directAllToAll, false)
NCCLRUN_QUICK(Collecting, directGather, true)
NCCLRUN_QUICK(Dealing, directScatter, true)
#undef NCCLRUN_QUICK
struct Passing {
  static constexpr bool kInline = true;
  static constexpr bool kOneWay = true;
  static __device__ void run(auto& p, const Work& w, Routine routine) {
    if (routine == Routine::send) return sendTo(p, w);
    if (routine == Routine::receive) return receiveFrom(p, w);
    p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  }
};

// Part `block` of one item.
template <class Protocol, class Routines>
__device__ __forceinline__ void runItem(const Launch& launch, Ends& ends, const Item& item, uint32_t block) {
  const uint32_t channel = (item.firstChannel + block) % launch.slots.channels;
  const uint32_t place = item.usesRing ? launch.places[channel].place : 0;
  const EndStore<Protocol::kProtocol> store(launch, item, channel);
  store.load(ends);
  __syncthreads();
  Primitives<Protocol, Routines::kInline> primitives(launch, ends, item.receiveCount, item.sendCount);
  const Work work = workOf(launch, item, block, channel, place, Protocol::kProtocol == 1);
  Routines::run(primitives, work, item.routine);
  primitives.finish();
  __syncthreads();
  store.store(ends);
  __syncthreads();
}
template <class Protocol, class Routines>
__device__ __noinline__ void runItemApart(const Launch& launch, Ends& ends, const Item& item, uint32_t block) {
  runItem<Protocol, Routines>(launch, ends, item, block);
}

// run(ends, item, part): each part of an item that the calling block does.
__device__ __forceinline__ void forEachItem(const Launch& launch, auto&& run) {
  NCCLRUN_SHARED(Ends, ends);
  if (threadIdx.x == 0) ends.aborted = ends.reported = false;
  for (uint32_t i = 0; i < launch.itemCount; i++) {
    const Item& item = launch.items[i];
    const uint32_t worker = (blockIdx.x + gridDim.x - item.firstBlock) % gridDim.x;
    if (worker >= item.workers) continue;
#pragma unroll 1
    for (uint32_t part = worker; part < item.blocks; part += item.workers) run(ends, item, part);
  }
  if (threadIdx.x == 0) endBlock(launch, ends);
}

template <class Protocol, class Routines>
__device__ __forceinline__ void runBlock(const Launch& launch) {
  forEachItem(launch, [&](Ends& ends, const Item& item, uint32_t block) {
    runItem<Protocol, Routines>(launch, ends, item, block);
  });
}
// Of the calling block in a launch of one turn. Exchanges have one item, of which a launch does the parts from
// firstBlock on; others one behind the other, each with a block for each of its parts.
template <class Routines>
__device__ __forceinline__ const Item& itemOfTurn(const Launch& launch) {
  uint32_t i = 0;
  if constexpr (Routines::kOneWay) {
    while (blockIdx.x - launch.items[i].firstBlock >= launch.items[i].blocks) i++;
  }
  return launch.items[i];
}
// A launch of one turn. (The lane of an end writes it back itself.)
template <class Protocol, class Routines>
__device__ __forceinline__ void runTurn(const Launch& launch) {
  NCCLRUN_SHARED(TurnEnds, ends);
  const Item& item = itemOfTurn<Routines>(launch);
  const uint32_t part = Routines::kOneWay ? blockIdx.x - item.firstBlock : blockIdx.x + item.firstBlock;
  const uint32_t channel = Routines::kOneWay ? item.firstChannel + part : part;
  Primitives<Protocol, true> primitives(launch, ends, item.receiveCount, item.sendCount, item, channel);
  Routines::run(primitives, workOf(launch, item, part, 0, 0, Protocol::kProtocol == 1), item.routine);
  primitives.finish();
  if (threadIdx.x == 0) endBlock(launch, ends);
}
// Items of several protocols.
template <class AllKinds, class Routines>
__device__ __forceinline__ void runMixedBlock(const Launch& launch) {
  forEachItem(launch, [&](Ends& ends, const Item& item, uint32_t block) {
    if (item.protocol == Simple<AllKinds>::kProtocol)
      return runItemApart<Simple<AllKinds>, Routines>(launch, ends, item, block);
    if (item.protocol == Lines64<AllKinds>::kProtocol)
      return runItemApart<Lines64<AllKinds>, Routines>(launch, ends, item, block);
    runItemApart<Lines128<AllKinds>, Routines>(launch, ends, item, block);
  });
}

}  // namespace ncclrun::cuda

// Kernels of a module (kernels.cc knows their names): all routines under each protocol, and some routines by themselves
// under LL and LL128. Grid: up to the plan's channels, or of sends and receives those times connections; block: a
// multiple of 32 threads, 64 to 512.
#define NCCLRUN_KERNEL(Name, Protocol, Routines, ...)                                               \
  extern "C" __global__ void __launch_bounds__(512, 1)                                              \
      ncclrun##Protocol##Name(NCCLRUN_PARAMETER(ncclrun::cuda::Launch) launch) {                    \
    ncclrun::cuda::runBlock<ncclrun::cuda::Protocol<__VA_ARGS__>, ncclrun::cuda::Routines>(launch); \
  }
#define NCCLRUN_ALL_ROUTINES(Routines, ...)        \
  NCCLRUN_KERNEL(, Simple, Routines, __VA_ARGS__)  \
  NCCLRUN_KERNEL(, Lines64, Routines, __VA_ARGS__) \
  NCCLRUN_KERNEL(, Lines128, Routines, __VA_ARGS__)
#define NCCLRUN_ROUTINE_ALONE(Routine, ...)              \
  NCCLRUN_KERNEL(Routine, Lines64, Routine, __VA_ARGS__) \
  NCCLRUN_KERNEL(Routine, Lines128, Routine, __VA_ARGS__)
// In launches of one turn: grid: the items' blocks.
#define NCCLRUN_TURN(Name, Protocol, Routine, ...)                                     \
  extern "C" __global__ void __launch_bounds__(512, 1)                                 \
      ncclrun##Protocol##Turn##Name(NCCLRUN_PARAMETER(ncclrun::cuda::Launch) launch) { \
    using Steps = ncclrun::cuda::TurnSteps<ncclrun::cuda::Routine::kOneWay>;           \
    using Lines = ncclrun::cuda::Protocol<__VA_ARGS__, Steps::Of>;                     \
    ncclrun::cuda::runTurn<Lines, ncclrun::cuda::Routine>(launch);                     \
  }
#define NCCLRUN_TURNS(Name, Routine, ...)           \
  NCCLRUN_TURN(Name, Lines64, Routine, __VA_ARGS__) \
  NCCLRUN_TURN(Name, Lines128, Routine, __VA_ARGS__)
// Of the types of a module. Of the routines by themselves only the all-reduce of few bytes has them all: the others
// compile as long as they do for sums, and are seldom wanted.
#define NCCLRUN_REDUCTIONS(...)               \
  NCCLRUN_ALL_ROUTINES(Reduce, __VA_ARGS__)   \
  NCCLRUN_ROUTINE_ALONE(OneShot, __VA_ARGS__) \
  NCCLRUN_TURNS(OneShot, OneShot, __VA_ARGS__)
// Sums of one type (whole numbers': the unsigned one).
#define NCCLRUN_SUM_ALONE(Which, Routine, Type)                                \
  NCCLRUN_KERNEL(Routine##Which, Lines64, Routine, ncclrun::cuda::Sums<Type>)  \
  NCCLRUN_KERNEL(Routine##Which, Lines128, Routine, ncclrun::cuda::Sums<Type>) \
  NCCLRUN_TURNS(Routine##Which, Routine, ncclrun::cuda::Sums<Type>)
#define NCCLRUN_SUMS(Which, Type)            \
  NCCLRUN_SUM_ALONE(Which, OneShot, Type)    \
  NCCLRUN_SUM_ALONE(Which, TwoShot, Type)    \
  NCCLRUN_SUM_ALONE(Which, Scattering, Type) \
  NCCLRUN_TURNS(Reducing##Which, Reducing, ncclrun::cuda::Sums<Type>)
