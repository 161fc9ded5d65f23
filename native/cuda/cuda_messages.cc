// The part of Launcher that runs sends and receives, and collectives that are made of them.
#include <algorithm>
#include <utility>

#include "base/element.h"
#include "cuda/cuda_launcher.h"

namespace ncclrun::cuda {
namespace {

using plan::Collective;

// with(distance): the messages to the rank so far on in the order of ranks, and from the one so far back; launch():
// between those of one launch and the next, where one has no room for all. What two ranks exchange is in the same
// launch then, in both directions.
Status forEachDistance(uint32_t ranks, auto&& with, auto&& launch) {
  constexpr uint32_t kMaxDistances = (kMaxItems - 1) / 4;
  if (2 * ranks - 1 <= kMaxItems) {
    for (uint32_t distance = 1; distance < ranks; distance++) with(distance);
    return {};
  }
  for (uint32_t distance = 1; distance <= ranks / 2; distance++) {
    with(distance);
    if (2 * distance != ranks) with(ranks - distance);
    if (distance % kMaxDistances == 0) NCCLRUN_TRY(launch());
  }
  return {};
}

}  // namespace

// Maximum number of blocks of a message, of which both ranks compute the same.
uint32_t Launcher::blocksOfMessage(uint32_t messages) const {
  const uint32_t channels = plan_.header().smsPerLaunch;
  return std::max((channels - plan_.header().copyChannels) / std::max(messages, 1u), 1u);
}

// The k-th send of a rank to itself matches its k-th receive from itself.
Status Launcher::checkCopies(std::span<const Task* const> sends, std::span<const Task* const> receives) const {
  if (sends.size() != receives.size()) {
    return {ncclInvalidUsage, formatSentence("rank %u sends to itself %zu times and receives from itself %zu times in "
                                             "one group: these numbers must be equal",
                                             rank_, sends.size(), receives.size())};
  }
  for (size_t i = 0; i < sends.size(); i++) {
    const auto& send = sends[i]->operation;
    const auto& receive = receives[i]->operation;
    const size_t bytes = send.count * elementBytes(send.type);
    if (bytes != receive.count * elementBytes(receive.type)) {
      return {ncclInvalidUsage,
              formatSentence("rank %u sends itself %zu bytes and receives another number of bytes", rank_, bytes)};
    }
  }
  return {};
}

// Runs messages in rounds. All ranks of a group put the k-th messages of a pair into the same round, and of a round
// those of the same distances into the same launch, so a launch waits only for the peers' same launch and for nothing
// that this rank launches later. `messages`: number of messages of a round that all ranks assume.
Status Launcher::sendAndReceive(std::span<const Task* const> tasks, uint32_t messages, Stream stream) {
  const uint32_t ranks = plan_.header().ranks;
  std::vector<std::vector<const Task*>> sends(ranks), receives(ranks);
  for (const Task* task : tasks) (isSend(*task) ? sends : receives)[task->operation.peer].push_back(task);
  NCCLRUN_TRY(checkCopies(sends[rank_], receives[rank_]));
  const size_t perRound = std::max<size_t>(kMaxItems / (2 * ranks - 1), 1);
  size_t max = 0;
  for (uint32_t peer = 0; peer < ranks; peer++) max = std::max({max, sends[peer].size(), receives[peer].size()});
  const uint32_t maxBlocks = blocksOfMessage(messages);
  for (size_t first = 0; first < max; first += perRound) {
    uint32_t blocks = 0;
    Shape shape{};
    // `to`: the receiving tasks if the rank sends to itself.
    const auto add = [&](const std::vector<const Task*>& queue, uint32_t limit,
                         const std::vector<const Task*>* to = nullptr) {
      uint32_t used = 0;
      for (size_t i = first; i < std::min(queue.size(), first + perRound); i++) {
        if (queue[i]->operation.count == 0) continue;
        const Shape taskShape = shapeOf(*queue[i]);
        if (launch_.itemCount == 0) shape = taskShape;
        if (taskShape.protocol != shape.protocol) shape.routine = Routine::mixed;
        shape.threads = std::max(shape.threads, taskShape.threads);
        Item item = itemOf(*queue[i], taskShape);
        if (to != nullptr) {
          item.routine = Routine::copy;
          item.sendCount = 0;
          item.receive = static_cast<char*>((*to)[i]->operation.receive);
        }
        item.blocks = uint16_t(std::min<uint32_t>(item.blocks, limit));
        item.firstBlock = uint16_t(blocks);
        used = std::max<uint32_t>(used, item.blocks);
        addItem(item, taskShape);
      }
      blocks += used;
    };
    const auto exchange = [&](uint32_t distance) {
      add(sends[(rank_ + distance) % ranks], maxBlocks);
      add(receives[(rank_ + ranks - distance) % ranks], maxBlocks);
    };
    NCCLRUN_TRY(forEachDistance(ranks, exchange, [&] { return flush(shape, std::exchange(blocks, 0), true, stream); }));
    add(sends[rank_], plan_.header().copyChannels, &receives[rank_]);
    NCCLRUN_TRY(flush(shape, blocks, true, stream));
  }
  return {};
}

// An all-to-all of several hosts in place: exchanges with one peer each. At other ranks it may be messages.
Status Launcher::exchangeInPlace(const Task& task, uint32_t messages, Stream stream) {
  const uint32_t ranks = plan_.header().ranks;
  Task exchange = task;
  exchange.operation.collective = Collective::sendRecv;
  Shape shape = shapeOf(exchange);
  shape.routine = Routine::exchange;  // under LL the kernel of sends and receives alone has none
  const size_t bytes = task.operation.count * elementBytes(task.operation.type);
  uint32_t blocks = 0;
  const auto add = [&](uint32_t peer) {
    exchange.operation.peer = peer;
    exchange.operation.receive = static_cast<char*>(task.operation.receive) + peer * bytes;
    exchange.operation.send = exchange.operation.receive;
    Item item = itemOf(exchange, shape);
    item.blocks = uint16_t(std::min<uint32_t>(item.blocks, blocksOfMessage(messages)));
    item.firstBlock = uint16_t(blocks);
    blocks += item.blocks;
    addItem(item, shape);
  };
  const auto addAt = [&](uint32_t distance) { add((rank_ + distance) % ranks); };
  NCCLRUN_TRY(forEachDistance(ranks, addAt, [&] { return flush(shape, std::exchange(blocks, 0), true, stream); }));
  return flush(shape, blocks, true, stream);
}

// Splits a large collective without reduction into sends, receives and copies, each with its own blocks, which keep
// the links busy in both directions.
bool Launcher::expand(const Task& task, std::vector<Task>& transfers) const {
  const auto& operation = task.operation;
  const uint32_t ranks = plan_.header().ranks;
  if ((task.variant.flags & plan::kAsMessages) == 0) return false;
  const auto* const source = static_cast<const char*>(operation.send);
  auto* const target = static_cast<char*>(operation.receive);
  const auto add = [&](uint32_t peer, const char* from, char* to) {
    Task transfer = task;
    transfer.operation.collective = Collective::sendRecv;
    transfer.operation.peer = peer;
    transfer.operation.send = from;
    transfer.operation.receive = to;
    transfers.push_back(transfer);
  };
  const size_t bytes = operation.count * elementBytes(operation.type);
  switch (operation.collective) {
    case Collective::gather:
      add(operation.peer, source, nullptr);
      for (uint32_t peer = 0; peer < ranks && rank_ == operation.peer; peer++)
        add(peer, nullptr, target + peer * bytes);
      return true;
    case Collective::scatter:
      add(operation.peer, nullptr, target);
      for (uint32_t peer = 0; peer < ranks && rank_ == operation.peer; peer++)
        add(peer, source + peer * bytes, nullptr);
      return true;
    case Collective::allToAll:
      if (source == target) return false;  // received data would overwrite data that has not been sent
      [[fallthrough]];
    case Collective::allGather:
      for (uint32_t peer = 0; peer < ranks; peer++) {
        add(peer, operation.collective == Collective::allGather ? source : source + peer * bytes, nullptr);
        add(peer, nullptr, target + peer * bytes);
      }
      return true;
    case Collective::broadcast:
      if (ranks != 2) return false;
      if (rank_ == operation.peer) {
        add(1 - rank_, source, nullptr);
        if (source != target) {
          add(rank_, source, nullptr);
          add(rank_, nullptr, target);
        }
      } else {
        add(operation.peer, nullptr, target);
      }
      return true;
    default:
      return false;
  }
}

}  // namespace ncclrun::cuda
