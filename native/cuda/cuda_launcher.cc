#include "cuda/cuda_launcher.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "algorithm/work.h"
#include "base/element.h"
#include "cuda/launch_workers.h"
#include "datapath/reduce.h"
#include "net/proxy/rail_group.h"
#include "plan/tree_shape.h"
#include "plan/variants.h"

namespace ncclrun::cuda {
namespace {

using plan::Algorithm;
using plan::Collective;
using plan::Protocol;

constexpr uint32_t kMaxThreads = 512;
constexpr uint32_t kMinSimpleThreads = 128;  // four warps, of which three do not reduce

Routine routineOf(Collective collective, Algorithm algorithm, uint32_t ranks, bool sends) {
  const bool ring = algorithm == Algorithm::ring;
  const bool tree = algorithm == Algorithm::tree;
  const bool rail = algorithm == Algorithm::rail;
  if (ranks == 1 && collective != Collective::barrier) return Routine::copy;
  switch (collective) {
    case Collective::allReduce:
      if (algorithm == Algorithm::directOneShot) return Routine::allReduceOneShot;
      if (algorithm == Algorithm::directTwoShot) return Routine::allReduceTwoShot;
      if (algorithm == Algorithm::collnet) return Routine::allReduceCollnet;
      if (algorithm == Algorithm::collnetChain) return Routine::allReduceCollnetChain;
      return ring ? Routine::allReduceRing : rail ? Routine::allReduceRail : Routine::allReduceTree;
    case Collective::allGather:
      return ring ? Routine::allGatherRing : rail ? Routine::allGatherRail : Routine::allGatherDirect;
    case Collective::reduceScatter:
      return ring ? Routine::reduceScatterRing : rail ? Routine::reduceScatterRail : Routine::reduceScatterDirect;
    case Collective::broadcast:
      return ring ? Routine::broadcastRing : tree ? Routine::broadcastTree : Routine::broadcastDirect;
    case Collective::reduce:
      return ring ? Routine::reduceRing : tree ? Routine::reduceTree : Routine::reduceDirect;
    case Collective::allToAll:
      return Routine::allToAll;
    case Collective::gather:
      return Routine::gather;
    case Collective::scatter:
      return Routine::scatter;
    case Collective::sendRecv:
      return sends ? Routine::send : Routine::receive;
    case Collective::barrier:
      break;
  }
  return Routine::barrier;
}

}  // namespace

Launcher::Shape Launcher::shapeOf(const Task& task) const {
  const auto& operation = task.operation;
  const uint32_t ranks = plan_.header().ranks;
  Shape shape{.kernel = {kBytesModule, 0},
              .protocol = Protocol(task.variant.protocol),
              .routine = routineOf(operation.collective, Algorithm(task.variant.algorithm), ranks, true),
              .threads = std::min(task.variant.threads / 32 * 32, kMaxThreads),
              .elementBytes = 1,
              .scalarAt = nullptr,
              .scalar = 0,
              .divisor = 1,
              .reduction = 0};
  if (operation.collective == Collective::barrier) shape.threads = 32;
  if (shape.protocol == Protocol::simple) shape.threads = std::max(shape.threads, kMinSimpleThreads);
  if (!reduces(operation.collective)) return shape;
  shape.elementBytes = uint8_t(elementBytes(operation.type));
  shape.kernel = kernelFor(operation.type, ranks == 1 && operation.op == ncclAvg ? ncclSum : operation.op);
  Reduction reduction;
  const uint64_t none = 0;
  makeReduction(operation.type, operation.op, operation.scalarAt != nullptr ? &none : &operation.scalar, ranks,
                reduction);
  shape.scalarAt = operation.scalarAt;
  shape.scalar = reduction.scalar;
  shape.divisor = reduction.divisor;
  if (isCollnet(Algorithm(task.variant.algorithm))) {
    const auto byNetwork = networkReduction(operation.type, operation.op);
    shape.reduction = byNetwork.has_value() ? numberOf(*byNetwork) : uint8_t(0);
  }
  return shape;
}

void Launcher::connect(Item& item, uint32_t peer) const {
  const uint32_t ranks = plan_.header().ranks;
  const auto from = [&](uint32_t other) { item.peers[item.receiveCount++] = uint16_t(other); };
  const auto to = [&](uint32_t other) { item.peers[item.sendCount++] = uint16_t(other); };
  const auto both = [&](uint32_t other) {
    from(other);
    to(other);
  };
  const auto forEachPeer = [&](auto&& connectWith) {
    for (uint32_t other = 0; other < ranks; other++) {
      if (other != rank_) connectWith(other);
    }
  };
  switch (item.routine) {
    case Routine::copy:
      return;
    case Routine::allReduceRing:
    case Routine::reduceScatterRing:
    case Routine::reduceRing:
    case Routine::allGatherRing:
    case Routine::broadcastRing:
      item.usesRing = true;
      item.receiveCount = item.sendCount = 1;
      return;
    case Routine::allReduceTree:
    case Routine::reduceTree:
    case Routine::broadcastTree: {
      if (item.routine == Routine::allReduceTree) item.root = uint16_t(topOfTree(plan_, kTreeChannel));
      const TreePosition position = treePosition(plan_, kTreeChannel, rank_, item.root);
      for (const uint32_t child : position.children) both(child);
      item.children = position.children.size() & 15;
      if (rank_ != item.root) both(position.parent);
      return;
    }
    case Routine::allReduceRail:
    case Routine::reduceScatterRail:
    case Routine::allGatherRail:
      for (const uint32_t other : railPeers_) both(other);
      return;
    case Routine::allReduceCollnet:
      for (uint32_t local = 0; local < plan_.header().localRanks; local++) {
        const uint32_t other = plan_.member(plan_.header().hostIndex, local);
        if (other != rank_) both(other);
      }
      return both(rank_);  // the network
    case Routine::allReduceCollnetChain: {
      const ChainPosition& place = chains_[item.firstChannel];
      if (place.farther.has_value()) both(*place.farther);
      both(place.nearer.value_or(rank_));
      item.children = place.farther.has_value() ? 1 : 0;
      item.root = uint16_t(place.distance);
      return;
    }
    case Routine::send:
      return to(peer);
    case Routine::receive:
      return from(peer);
    case Routine::exchange:
      return both(peer);
    case Routine::reduceDirect:
    case Routine::gather:
      return rank_ == item.root ? forEachPeer(from) : to(item.root);
    case Routine::broadcastDirect:
    case Routine::scatter:
      return rank_ == item.root ? forEachPeer(to) : from(item.root);
    default:
      return forEachPeer(both);
  }
}

// What the kernel records of a task's item. Of an operation that takes several items only the first one is recorded.
ItemRecord Launcher::recordOf(const Task& task) {
  if (recorder_ == nullptr || task.record == 0 || task.record == recorded_) return {};
  const ncclrunRecorderEntry* const entry = recorder_->stamped(task.record);
  if (entry == nullptr) return {};
  recorded_ = task.record;
  if (!captured_) return {task.record, 0};
  ncclrunRecorderEntry replayed = *entry;
  replayed.flags |= ncclrunRecordReplay;
  replayed.stream = 0;
  ItemRecord record{};
  std::memcpy(&record.call, &replayed.flags, sizeof record.call);
  record.countAndPeer = (replayed.count & ((uint64_t{1} << 48) - 1)) | (replayed.peer & kNoRecordPeer) << 48;
  return record;
}

// Numbers the collectives of a captured launch: all ranks have the same of them in it, in the same order.
void Launcher::numberRecords() {
  if (!captured_) return;
  uint64_t collectives = 0;
  for (uint32_t i = 0; i < launch_.itemCount; i++) {
    uint64_t& call = launch_.items[i].record.call;
    if (call != 0 && (call >> 16 & 0xff) != uint64_t(Collective::sendRecv)) call |= collectives++ << 56;
  }
}

Item Launcher::itemOf(const Task& task, const Shape& shape) {
  const auto& operation = task.operation;
  Item item{};
  item.send = static_cast<const char*>(operation.send);
  item.receive = static_cast<char*>(operation.receive);
  item.count = operation.count * elementBytes(operation.type) / shape.elementBytes;
  item.chunk = std::max<uint64_t>(task.variant.chunkBytes / shape.elementBytes, 1);
  // The granularity of chunks is what the block's threads carry in one pass, as in NCCL: eight bytes per thread, where
  // Simple does not count one warp; 15 bytes under LL128, whose lines of 120 bytes take eight threads.
  const uint32_t grainBytes = shape.protocol == Protocol::ll128
                                  ? shape.threads * 15
                                  : (shape.threads - (shape.protocol == Protocol::ll ? 0 : 32)) * 8;
  item.grain = uint16_t(std::max(grainBytes / shape.elementBytes, 1u));
  item.blocks = uint16_t(task.variant.channels);
  item.root = uint16_t(operation.peer);
  item.protocol = uint8_t(shape.protocol) & 3;
  item.routine = routineOf(operation.collective, Algorithm(task.variant.algorithm), plan_.header().ranks, isSend(task));
  const bool isExchange =
      operation.collective == Collective::sendRecv && item.send != nullptr && item.receive != nullptr;
  if (isExchange) item.routine = Routine::exchange;
  item.record = recordOf(task);
  connect(item, operation.peer);
  return item;
}

// Adds an item whose channels are set. A step fits the smallest slot on these channels; the slots of protocol Simple
// are smaller on narrow channels.
void Launcher::addItem(Item item, const Shape& shape) {
  const Slots& slots = launch_.slots;
  const uint32_t last = item.firstChannel + item.blocks;
  const uint32_t narrow = last > slots.channels ? slots.channels - 1 : last - 1;
  const uint32_t slotBytes = shape.protocol == Protocol::ll      ? slots.llStepBytes / 16 * 8
                             : shape.protocol == Protocol::ll128 ? slots.ll128StepBytes / 128 * 120
                                                                 : pairStepBytes(slots, narrow);
  Work work{};
  work.count = item.count;
  work.chunk = item.chunk;
  work.grain = item.grain;
  work.blocks = item.blocks;
  work.isLL = shape.protocol == Protocol::ll;
  const size_t slotElements = slotBytes / shape.elementBytes;
  const uint32_t shares = item.routine == Routine::allReduceRail      ? launch_.ranks
                          : item.routine == Routine::allReduceCollnet ? launch_.locals
                                                                      : 1;
  item.step = stepOf(work, slotElements, shares);
  const uint32_t parts = item.routine == Routine::allReduceTwoShot ? launch_.ranks : 1;
  const bool hasKernel = hasSingleStepKernel(shape.kernel, shape.protocol, item.routine);
  const bool hasRoom = item.blocks <= slots.channels && slots.lineSteps >= kMinLineStepsForSingleStep;
  const size_t chunk = hasKernel && hasRoom ? singleStepChunk(work, slotElements, parts) : 0;
  if (chunk > 0) item.step = chunk;
  item.isSingleStep = chunk > 0 || (hasKernel && item.routine == Routine::copy);
  launch_.items[launch_.itemCount++] = item;
}

void Launcher::addChains(const Item& item, const Shape& shape) {
  const uint64_t grain = item.grain;
  const uint64_t share = (item.count + item.blocks - 1) / item.blocks;
  const uint64_t part = (share + grain - 1) / grain * grain;
  for (uint16_t channel = 0; channel * part < item.count; channel++) {
    Item one = item;
    one.send += channel * part * shape.elementBytes;
    one.receive += channel * part * shape.elementBytes;
    one.count = std::min(part, item.count - channel * part);
    one.blocks = 1;
    one.firstBlock = one.firstChannel = channel;
    one.receiveCount = one.sendCount = 0;
    if (channel > 0) one.record = {};
    connect(one, 0);
    addItem(one, shape);
  }
}

// True if the launch can be a single-step launch, in which each block has a part of one item.
bool Launcher::isSingleStep(const Shape& shape, uint32_t blocks) const {
  if (launch_.itemCount > 1 && !isOneWay(shape.routine)) return false;
  uint32_t next = 0;
  for (uint32_t i = 0; i < launch_.itemCount; i++) {
    const Item& item = launch_.items[i];
    if (!item.isSingleStep || item.firstBlock != next) return false;
    next += item.blocks;
  }
  return next == blocks;
}

// `separateQueues`: each queue of items has its own blocks.
Status Launcher::flush(const Shape& shape, uint32_t blocks, bool separateQueues, Stream stream) {
  if (launch_.itemCount == 0) return {};
  launch_.elementBytes = shape.elementBytes;
  launch_.opIndex = shape.kernel.opIndex;
  launch_.reduction = shape.reduction;
  launch_.scalarAt = shape.scalarAt;
  launch_.scalar = shape.scalar;
  launch_.divisor = shape.divisor;
  numberRecords();
  const std::span<Item> items(launch_.items, launch_.itemCount);
  const uint32_t queues = separateQueues ? countQueues(items) : 1;
  const uint32_t granted = share_.take(blocks, queues, captured_);
  // If too few blocks are granted, one-way operations use the kernels for any length, with which a single-step launch
  // of the peer is compatible.
  const bool singleStep = isSingleStep(shape, blocks) && (granted == blocks || !isOneWay(shape.routine));
  Status status;
  if (singleStep) {
    status = launch(shape, true, std::min(granted, blocks), stream);
    for (uint32_t first = granted; first < blocks && status.ok(); first += granted) {
      launch_.items[0].firstBlock = uint16_t(first);
      status = launch(shape, true, std::min(granted, blocks - first), stream);
    }
  } else {
    const uint32_t grid = separateQueues ? divideWorkers(items, granted, blocks, queues) : shareWorkers(items, granted);
    // A pull involves no other rank, so it has as many parts as there are blocks.
    if (shape.routine == Routine::reducePulled) launch_.items[0].blocks = launch_.items[0].workers;
    status = launch(shape, false, grid, stream);
  }
  launch_.itemCount = 0;
  return status;
}

Status Launcher::launch(const Shape& shape, bool singleStep, uint32_t grid, Stream stream) {
  Status status;
  if (lastFunction_ == nullptr || shape != lastShape_ || singleStep != lastIsSingleStep_) {
    status = load(gpu_, shape.kernel, shape.protocol, shape.routine, singleStep, lastFunction_);
    lastShape_ = shape;
    lastIsSingleStep_ = singleStep;
    if (!status.ok()) lastFunction_ = nullptr;
  }
  if (!status.ok()) return status;
  // Pass only the items in use: reading all of them would take the GPU as long as a small kernel.
  size_t bytes = offsetof(Launch, items) + launch_.itemCount * sizeof(Item);
  void* extra[] = {kParameterBuffer, &launch_, kParameterBytes, &bytes, kParametersEnd};
  status = statusOf(driver().launchKernel(lastFunction_, grid, 1, 1, shape.threads, 1, 1,
                                          sharedBytesOf(shape.protocol, shape.routine), stream, nullptr, extra),
                    "cuLaunchKernel");
  if (status.ok() && launch_.ended != nullptr) counted_ += grid;
  return status;
}

// True if the operation of a communicator of one rank is a plain copy, not multiplied by a scalar.
bool Launcher::isCopy(const Task& task) const {
  const auto& operation = task.operation;
  return plan_.header().ranks == 1 && operation.collective != Collective::barrier &&
         !(reduces(operation.collective) && operation.op == kPreMulSum);
}

// Copies through the driver, which takes a fifth of the time of a general kernel.
Status Launcher::copy(const Task& task, Stream stream) {
  const auto& operation = task.operation;
  if (operation.send == operation.receive) return {};
  copied_ = true;
  const auto pointer = [](const void* address) { return reinterpret_cast<Pointer>(address); };
  const size_t bytes = operation.count * elementBytes(operation.type);
  return statusOf(driver().memcpyAsync(pointer(operation.receive), pointer(operation.send), bytes, stream),
                  "cuMemcpyAsync");
}

Status Launcher::pull(const Task& task, std::span<const Pointer> sources, Stream stream) {
  copied_ = false;
  launch_.itemCount = 0;
  Shape shape = shapeOf(task);
  shape.routine = Routine::reducePulled;
  Item item{};
  item.send = static_cast<const char*>(task.operation.send);
  item.receive = static_cast<char*>(task.operation.receive);
  item.count = task.operation.count;
  item.blocks = uint16_t(std::min<uint32_t>(task.variant.channels, plan_.header().smsPerLaunch));
  item.routine = shape.routine;
  item.record = recordOf(task);
  launch_.items[launch_.itemCount++] = item;
  const auto regions = std::to_array(launch_.in);
  for (size_t rank = 0; rank < sources.size(); rank++) launch_.in[rank] = reinterpret_cast<char*>(sources[rank]);
  Status status = flush(shape, item.blocks, false, stream);
  std::copy(regions.begin(), regions.end(), launch_.in);
  return status;
}

Status Launcher::run(std::span<const Task> tasks, Stream stream) {
  copied_ = false;
  launch_.itemCount = 0;
  const uint32_t messagesOfGroup = 2 * (plan_.header().ranks - 1);
  std::vector<const Task*> pointToPoint;
  for (const Task& task : tasks) {
    if (task.operation.collective == Collective::sendRecv) pointToPoint.push_back(&task);
  }
  if (!pointToPoint.empty()) {
    NCCLRUN_TRY(sendAndReceive(pointToPoint, messagesOfGroup, stream));
  }
  // Adjacent operations of one shape share a launch, in which they take the channels round-robin.
  const uint32_t channels = plan_.header().smsPerLaunch;
  Shape shape{};
  uint32_t blocks = 0;
  const auto launch = [&] { return flush(shape, std::min(std::exchange(blocks, 0), channels), false, stream); };
  for (const Task& task : tasks) {
    const auto& operation = task.operation;
    if (operation.collective == Collective::sendRecv) continue;
    if (operation.count == 0 && operation.collective != Collective::barrier) continue;
    if (isCopy(task)) {
      Status status = launch();
      if (status.ok()) status = copy(task, stream);
      if (!status.ok()) return status;
      continue;
    }
    const bool isInPlace = operation.collective == Collective::allToAll && operation.send == operation.receive;
    if (plan_.header().hosts > 1 && isInPlace) {
      NCCLRUN_TRY(launch());
      NCCLRUN_TRY(exchangeInPlace(task, messagesOfGroup, stream));
      continue;
    }
    if (std::vector<Task> transfers; expand(task, transfers)) {
      Status status = launch();
      std::vector<const Task*> all;
      for (const Task& transfer : transfers) all.push_back(&transfer);
      const bool isBroadcast = operation.collective == Collective::broadcast;
      if (status.ok()) status = sendAndReceive(all, isBroadcast ? 1 : messagesOfGroup, stream);
      if (!status.ok()) return status;
      continue;
    }
    const Shape taskShape = shapeOf(task);
    // Sharing a launch determines the channels, so all ranks have to decide alike. A user's scalar is local to a rank,
    // and so is whether an all-to-all is in place: these operations get their own launch.
    // Between hosts pairs have connections on the first channels alone.
    const bool isRing = Algorithm(task.variant.algorithm) == Algorithm::ring && taskShape.protocol == Protocol::simple;
    const bool isInPairs = plan_.header().hosts > 1 && !isRing;
    const bool needsOwnLaunch = isInPairs || operation.op == kPreMulSum || operation.collective == Collective::allToAll;
    if (launch_.itemCount > 0 && (taskShape != shape || needsOwnLaunch || launch_.itemCount == kMaxItems)) {
      NCCLRUN_TRY(launch());
    }
    shape = taskShape;
    Item item = itemOf(task, taskShape);
    if ((task.variant.flags & plan::kAsMessages) != 0) {
      item.blocks = uint16_t(std::min<uint32_t>(item.blocks, blocksOfMessage(messagesOfGroup)));
    }
    item.firstBlock = item.firstChannel = uint16_t(blocks % channels);
    if (item.routine == Routine::allReduceCollnetChain) {
      addChains(item, taskShape);
    } else {
      addItem(item, taskShape);
    }
    blocks += item.blocks;
    if (!needsOwnLaunch) continue;
    NCCLRUN_TRY(launch());
  }
  return launch();
}

}  // namespace ncclrun::cuda
