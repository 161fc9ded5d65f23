#include "host/operation_runner.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "algorithm/collnet.h"
#include "algorithm/direct.h"
#include "algorithm/rail.h"
#include "algorithm/ring.h"
#include "algorithm/send_receive.h"
#include "algorithm/tree.h"
#include "base/element.h"
#include "plan/tree_shape.h"

namespace ncclrun {
namespace {

using plan::Collective;

// Buffers of at least this size use streaming stores. Their results leave the caches before anybody reads them, so the
// stores bypass the caches: 4 MiB take 165 us instead of 280 (2 ranks, 1 MB of L2 each, 32 MB of L3). Streaming stores
// do not pay in place, where the lines written have just been read.
constexpr uint64_t kStreamingBytes = 4u << 20;

bool usesLL(const Task& task) { return task.variant.protocol == uint8_t(plan::Protocol::ll); }

// Error of an operation that lacks a connection although no interrupt was raised. The operation has not begun, and the
// other ranks wait for this one.
Status missingConnection(const Task& task) {
  return {ncclInternalError, std::string(nameOf(task.operation.collective)) +
                                 ": the plan names no connection for it; this is a defect of ncclrun"};
}

}  // namespace

Work OperationRunner::workOf(const Task& task) const {
  const auto& operation = task.operation;
  Work work{};
  work.send = static_cast<const char*>(operation.send);
  work.receive = static_cast<char*>(operation.receive);
  work.count = operation.count;
  work.elementBytes = elementBytes(operation.type);
  work.chunk = std::max<size_t>(task.variant.chunkBytes / work.elementBytes, 1);
  work.isLL = usesLL(task);
  work.grain = (task.variant.threads - (work.isLL ? 0 : 32)) * size_t(8) / work.elementBytes;
  work.blocks = 1;
  work.rank = rank_;
  work.ranks = plan_.header().ranks;
  work.root = operation.peer;
  return work;
}

Reduction OperationRunner::reductionOf(const Operation& operation) const {
  Reduction reduction;
  if (reduces(operation.collective)) {
    const void* scalar = operation.scalarAt != nullptr ? operation.scalarAt : &operation.scalar;
    makeReduction(operation.type, operation.op, scalar, plan_.header().ranks, reduction);
  }
  return reduction;
}

OperationRunner::Block& OperationRunner::addBlock(const Task& task, Algorithm algorithm) {
  if (used_ == blocks_.size()) blocks_.emplace_back();
  Block& block = blocks_[used_++];
  block.receives.clear();
  block.sends.clear();
  block.works.clear();
  block.parts = 1;
  block.lends = true;
  block.algorithm = algorithm;
  block.reduction = reductionOf(task.operation);
  block.stream = task.bytes >= kStreamingBytes && task.operation.send != task.operation.receive;
  return block;
}

OperationRunner::Ring* OperationRunner::ring(uint32_t channel) {
  const uint32_t n = plan_.header().ranks;
  while (rings_.size() <= channel) {
    const auto number = uint32_t(rings_.size());
    Ring ring;
    ring.ranks.resize(n);
    for (uint32_t index = 0; index < n; index++) ring.ranks[index] = plan_.ring(number, index);
    ring.index = plan_.ringIndex(number, rank_);
    if (n > 1) {
      ring.next = connections_.ring(number, ring.ranks[(ring.index + 1) % n], true);
      ring.previous = connections_.ring(number, ring.ranks[(ring.index + n - 1) % n], false);
      if (ring.next == nullptr || ring.previous == nullptr) return nullptr;
    }
    rings_.push_back(std::move(ring));
  }
  return &rings_[channel];
}

bool OperationRunner::buildRing(const Task& task, Algorithm algorithm, uint32_t channels) {
  for (uint32_t number = 0; number < channels; number++) {
    const Ring* ring = this->ring((task.firstChannel + number) % plan_.header().channels);
    if (ring == nullptr) return false;
    Block& block = addBlock(task, algorithm);
    if (ring->next != nullptr) {
      block.receives.push_back(ring->previous);
      block.sends.push_back(ring->next);
    }
    Work work = workOf(task);
    work.block = number;
    work.blocks = channels;
    work.ringIndex = ring->index;
    work.ring = ring->ranks.data();
    block.works.push_back(work);
  }
  return true;
}

bool OperationRunner::buildDirect(const Task& task, Algorithm algorithm) {
  if (pairSends_.empty()) {
    for (uint32_t peer = 0; peer < plan_.header().ranks; peer++) {
      if (peer == rank_) continue;
      pairSends_.push_back(connections_.pair(peer, true));
      pairReceives_.push_back(connections_.pair(peer, false));
      if (pairSends_.back() == nullptr || pairReceives_.back() == nullptr) return false;
    }
  }
  // One block, because two ranks share one connection whatever the number of channels.
  Block& block = addBlock(task, algorithm);
  block.receives = pairReceives_;
  block.sends = pairSends_;
  block.works.push_back(workOf(task));
  return true;
}

const OperationRunner::Rail* OperationRunner::rail() {
  if (rail_.has_value()) return &*rail_;
  Rail made{.position = railPosition(plan_, rank_), .ranks = ranksByHost(plan_), .receives = {}, .sends = {}};
  for (const uint32_t peer : made.position.peers) {
    made.receives.push_back(connections_.pair(peer, false));
    made.sends.push_back(connections_.pair(peer, true));
    if (made.receives.back() == nullptr || made.sends.back() == nullptr) return nullptr;
  }
  return &rail_.emplace(std::move(made));
}

void OperationRunner::addBlockOf(const Rail& rail, const Task& task, Algorithm algorithm, uint32_t parts) {
  Block& block = addBlock(task, algorithm);
  block.receives = rail.receives;
  block.sends = rail.sends;
  block.parts = parts;
  Work work = workOf(task);
  work.hosts = rail.position.hosts;
  work.host = rail.position.host;
  work.locals = rail.position.locals;
  work.local = rail.position.local;
  work.byHost = rail.ranks.data();
  block.works.push_back(work);
}

bool OperationRunner::buildRail(const Task& task, Algorithm algorithm) {
  const Rail* rail = this->rail();
  if (rail == nullptr) return false;
  addBlockOf(*rail, task, algorithm, task.operation.collective == Collective::allReduce ? plan_.header().ranks : 1);
  return true;
}

const OperationRunner::Rail* OperationRunner::collnet() {
  if (collnet_.has_value()) return &*collnet_;
  Rail made{.position = railPosition(plan_, rank_), .ranks = {}, .receives = {}, .sends = {}};
  const auto add = [&made](Endpoint* receives, Endpoint* sends) {
    made.receives.push_back(receives);
    made.sends.push_back(sends);
    return receives != nullptr && sends != nullptr;
  };
  const RailPosition& place = made.position;
  for (uint32_t local = 0; local < place.locals; local++) {
    const uint32_t peer = plan_.member(place.host, local);
    if (peer != rank_ && !add(connections_.pair(peer, false), connections_.pair(peer, true))) return nullptr;
  }
  if (!add(connections_.group(false), connections_.group(true))) return nullptr;
  return &collnet_.emplace(std::move(made));
}

bool OperationRunner::buildCollnet(const Task& task, Algorithm algorithm) {
  const Rail* collnet = this->collnet();
  if (collnet == nullptr) return false;
  addBlockOf(*collnet, task, algorithm, collnet->position.locals);
  return true;
}

const OperationRunner::Chain* OperationRunner::collnetChain() {
  if (collnetChain_.has_value()) return &*collnetChain_;
  Chain made{.position = chainPosition(plan_, rank_, 0), .receives = {}, .sends = {}};
  const auto add = [&made](Endpoint* receives, Endpoint* sends) {
    made.receives.push_back(receives);
    made.sends.push_back(sends);
    return receives != nullptr && sends != nullptr;
  };
  const auto addPair = [&](uint32_t peer) {
    return add(connections_.pair(peer, false), connections_.pair(peer, true));
  };
  const auto& [farther, nearer, distance] = made.position;
  if (farther.has_value() && !addPair(*farther)) return nullptr;
  if (!(nearer.has_value() ? addPair(*nearer) : add(connections_.group(false), connections_.group(true))))
    return nullptr;
  return &collnetChain_.emplace(std::move(made));
}

bool OperationRunner::buildCollnetChain(const Task& task, Algorithm algorithm) {
  const Chain* chain = collnetChain();
  if (chain == nullptr) return false;
  Block& block = addBlock(task, algorithm);
  block.receives = chain->receives;
  block.sends = chain->sends;
  Work work = workOf(task);
  work.children = chain->position.farther.has_value() ? 1 : 0;
  work.root = chain->position.distance;
  block.works.push_back(work);
  return true;
}

// Connects the root with all other ranks, and these with the root.
bool OperationRunner::buildStar(const Task& task, Algorithm algorithm) {
  if (task.operation.peer == rank_) return buildDirect(task, algorithm);
  Block& block = addBlock(task, algorithm);
  block.receives.push_back(connections_.pair(task.operation.peer, false));
  block.sends.push_back(connections_.pair(task.operation.peer, true));
  block.works.push_back(workOf(task));
  return block.receives[0] != nullptr && block.sends[0] != nullptr;
}

const OperationRunner::Tree* OperationRunner::tree(uint32_t root) {
  if (const auto known = trees_.find(root); known != trees_.end()) return &known->second;
  const TreePosition position = treePosition(plan_, kTreeChannel, rank_, root);
  std::vector<uint32_t> neighbours = position.children;
  if (rank_ != root) neighbours.push_back(position.parent);
  Tree made;
  made.children = uint32_t(position.children.size());
  for (uint32_t neighbour : neighbours) {
    made.receives.push_back(connections_.pair(neighbour, false));
    made.sends.push_back(connections_.pair(neighbour, true));
    if (made.receives.back() == nullptr || made.sends.back() == nullptr) return nullptr;
  }
  return &trees_.emplace(root, std::move(made)).first->second;
}

// Builds one block and so one tree, as for the direct algorithms: two ranks share one connection.
bool OperationRunner::buildTree(const Task& task, Algorithm algorithm) {
  Work work = workOf(task);
  if (task.operation.collective == Collective::allReduce) work.root = topOfTree(plan_, kTreeChannel);
  const Tree* tree = this->tree(work.root);
  if (tree == nullptr) return false;
  Block& block = addBlock(task, algorithm);
  block.receives = tree->receives;
  block.sends = tree->sends;
  work.children = tree->children;
  block.works.push_back(work);
  return true;
}

bool OperationRunner::buildBarrier(const Task& task) {
  if (plan::Algorithm(task.variant.algorithm) == plan::Algorithm::ring)
    return buildRing(task, ringBarrier<HostPrimitives>, 1);
  Block& block = addBlock(task, directBarrier<HostPrimitives>);
  const uint32_t n = plan_.header().ranks;
  for (uint32_t distance = 1; distance < n; distance *= 2) {
    block.sends.push_back(connections_.pair((rank_ + distance) % n, true));
    block.receives.push_back(connections_.pair((rank_ + n - distance) % n, false));
    if (block.sends.back() == nullptr || block.receives.back() == nullptr) return false;
  }
  block.works.push_back(workOf(task));
  return true;
}

bool OperationRunner::build(const Task& task) {
  using P = HostPrimitives;
  const uint32_t channels = task.variant.channels;
  const auto algorithm = plan::Algorithm(task.variant.algorithm);
  const bool ring = algorithm == plan::Algorithm::ring;
  const bool tree = algorithm == plan::Algorithm::tree;
  const bool rail = algorithm == plan::Algorithm::rail;
  switch (task.operation.collective) {
    case Collective::allReduce:
      if (algorithm == plan::Algorithm::directOneShot) return buildDirect(task, directOneShotAllReduce<P>);
      if (algorithm == plan::Algorithm::directTwoShot) return buildDirect(task, directTwoShotAllReduce<P>);
      if (rail) return buildRail(task, railAllReduce<P>);
      if (algorithm == plan::Algorithm::collnet) return buildCollnet(task, collnetAllReduce<P>);
      if (algorithm == plan::Algorithm::collnetChain) return buildCollnetChain(task, collnetChainAllReduce<P>);
      return tree ? buildTree(task, treeAllReduce<P>) : buildRing(task, ringAllReduce<P>, channels);
    case Collective::allGather:
      if (rail) return buildRail(task, railAllGather<P>);
      return ring ? buildRing(task, ringAllGather<P>, channels) : buildDirect(task, directAllGather<P>);
    case Collective::reduceScatter:
      if (rail) return buildRail(task, railReduceScatter<P>);
      return ring ? buildRing(task, ringReduceScatter<P>, channels) : buildDirect(task, directReduceScatter<P>);
    case Collective::broadcast:
      if (ring) return buildRing(task, ringBroadcast<P>, channels);
      return tree ? buildTree(task, treeBroadcast<P>) : buildStar(task, directBroadcast<P>);
    case Collective::reduce:
      if (ring) return buildRing(task, ringReduce<P>, channels);
      return tree ? buildTree(task, treeReduce<P>) : buildStar(task, directReduce<P>);
    case Collective::allToAll:
      return buildDirect(task, directAllToAll<P>);
    case Collective::gather:
      return buildStar(task, directGather<P>);
    case Collective::scatter:
      return buildStar(task, directScatter<P>);
    default:
      return buildBarrier(task);
  }
}

void OperationRunner::useLL() {
  for (size_t i = 0; i < used_; i++) {
    for (Endpoint*& endpoint : blocks_[i].receives) endpoint = &endpoint->ll();
    for (Endpoint*& endpoint : blocks_[i].sends) endpoint = &endpoint->ll();
  }
}

// Copies the messages that the rank sends to itself: its k-th send matches its k-th receive.
Status OperationRunner::copyToSelf(std::span<const Task* const> tasks) const {
  std::vector<const Operation*> sends, receives;
  for (const Task* task : tasks) {
    if (task->operation.peer == rank_) (isSend(*task) ? sends : receives).push_back(&task->operation);
  }
  if (sends.size() != receives.size()) {
    return {ncclInvalidUsage, "rank " + std::to_string(rank_) + " sends to itself " + std::to_string(sends.size()) +
                                  " times and receives from itself " + std::to_string(receives.size()) +
                                  " times in one group: these numbers must be equal"};
  }
  for (size_t i = 0; i < sends.size(); i++) {
    const size_t bytes = sends[i]->count * elementBytes(sends[i]->type);
    if (bytes != receives[i]->count * elementBytes(receives[i]->type)) {
      return {ncclInvalidUsage, "rank " + std::to_string(rank_) + " sends itself " + std::to_string(bytes) +
                                    " bytes and receives another number of bytes"};
    }
    if (bytes > 0) std::memmove(receives[i]->receive, sends[i]->send, bytes);
  }
  return {};
}

bool OperationRunner::buildSendsAndReceives(std::span<const Task* const> tasks) {
  // A message that another one replaces in the user's buffer must have been copied before: its block cannot know when.
  std::set<const void*> sent;
  for (const Task* task : tasks) {
    if (isSend(*task)) sent.insert(task->operation.send);
  }
  const bool isReplaced = std::ranges::any_of(
      tasks, [&](const Task* task) { return !isSend(*task) && sent.contains(task->operation.receive); });
  std::map<std::pair<uint32_t, bool>, size_t> blockOf;
  for (const Task* task : tasks) {
    const uint32_t peer = task->operation.peer;
    if (peer == rank_) continue;
    const bool sends = isSend(*task);
    auto [found, fresh] = blockOf.try_emplace({peer, sends}, used_);
    if (fresh) {
      Block& block = addBlock(*task, sends ? sendTo<HostPrimitives> : receiveFrom<HostPrimitives>);
      block.lends = !isReplaced;
      Endpoint* endpoint = connections_.pair(peer, sends);
      if (endpoint == nullptr) return false;
      (sends ? block.sends : block.receives).push_back(endpoint);
    }
    blocks_[found->second].works.push_back(workOf(*task));
  }
  return true;
}

void OperationRunner::runBlock(void* argument, Blocks& blocks) {
  auto& block = *static_cast<Block*>(argument);
  for (const Work& work : block.works) {
    HostPrimitives primitives(blocks, {.receives = block.receives,
                                       .sends = block.sends,
                                       .elementBytes = work.elementBytes,
                                       .slotBytes = work.isLL ? LLLines::kPayloadBytes : SIZE_MAX,
                                       .reduction = block.reduction,
                                       .scratch = block.scratch,
                                       .stream = block.stream,
                                       .lends = block.lends});
    Work stepped = work;
    stepped.step = stepOf(work, primitives.slotElements(), block.parts);
    block.algorithm(primitives, stepped);
    primitives.finish();
  }
}

void OperationRunner::runBlocks(Blocks& blocks) {
  constexpr size_t kInlineBodies = 16;
  Blocks::Body inlineBodies[kInlineBodies];
  std::vector<Blocks::Body> heapBodies(used_ > kInlineBodies ? used_ : 0);
  Blocks::Body* bodies = used_ > kInlineBodies ? heapBodies.data() : inlineBodies;
  for (size_t i = 0; i < used_; i++) bodies[i] = {runBlock, &blocks_[i]};
  if (used_ > 0) blocks.run({bodies, used_});
}

Status OperationRunner::run(const Launch& launch, SpinWait& spin, Telemetry& telemetry, const Recorder& recorder) {
  Blocks blocks(spin, telemetry);
  const Interrupt& interrupt = spin.interrupt();
  const auto isPointToPoint = [](const Task& task) { return task.operation.collective == Collective::sendRecv; };

  uint64_t begunNs = 0;
  const auto begin = [&](const Task& last, std::span<const Task* const> tasks) {
    const uint64_t time = telemetry.begin(last.operation, last.bytes);
    if (!recorder.isOn()) return;
    begunNs = time != 0 ? time : stampNanoseconds();
    for (const Task* task : tasks) recorder.started(task->record, begunNs);
    telemetry.waitsFor(&recorder, last.record);
  };
  const auto end = [&](const Task& last, std::span<const Task* const> tasks, const Status& status) {
    telemetry.end(last.operation, status.ok() && !interrupt.raised());
    if (!recorder.isOn()) return;
    telemetry.waitsFor(nullptr, 0);
    const uint16_t how = interrupt.raised() ? ncclrunRecordAborted : status.ok() ? 0 : ncclrunRecordFailed;
    // An operation ends with its last step, whose time is known: reading the clock costs more than all else here.
    const uint64_t lastStep = how == 0 ? telemetry.progressAfter(begunNs) : 0;
    const uint64_t now = lastStep != 0 ? lastStep : stampNanoseconds();
    for (const Task* task : tasks) recorder.ended(task->record, now, how);
  };
  std::vector<const Task*> pointToPoint;
  if (isPointToPoint(launch.first)) pointToPoint.push_back(&launch.first);
  for (const Task& task : launch.more) {
    if (isPointToPoint(task)) pointToPoint.push_back(&task);
  }
  if (!pointToPoint.empty()) {
    const Task& last = *pointToPoint.back();
    begin(last, pointToPoint);
    connections_.begin(last.operation);
    used_ = 0;
    Status status = copyToSelf(pointToPoint);
    if (status.ok()) {
      if (buildSendsAndReceives(pointToPoint)) {
        runBlocks(blocks);
      } else if (!interrupt.raised()) {
        status = missingConnection(last);
      }
    }
    end(last, pointToPoint, status);
    if (!status.ok()) return status;
  }
  const auto runCollective = [&](const Task& task) -> Status {
    if (isPointToPoint(task)) return {};
    if (interrupt.raised()) {
      recorder.ended(task.record, stampNanoseconds(), ncclrunRecordCancelled);
      return {};
    }
    const Task* const one[] = {&task};
    begin(task, one);
    connections_.begin(task.operation);
    used_ = 0;
    Status status;
    if (build(task)) {
      if (usesLL(task)) useLL();
      runBlocks(blocks);
    } else if (!interrupt.raised()) {
      status = missingConnection(task);
    }
    end(task, one, status);
    return status;
  };
  NCCLRUN_TRY(runCollective(launch.first));
  for (const Task& task : launch.more) {
    NCCLRUN_TRY(runCollective(task));
  }
  return interrupt.raised() ? interrupt.status() : Status{};
}

}  // namespace ncclrun
