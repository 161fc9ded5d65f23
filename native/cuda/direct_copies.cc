#include "cuda/direct_copies.h"

#include <algorithm>
#include <utility>

#include "datapath/reduce.h"

namespace ncclrun::cuda {
namespace {

using plan::Collective;

bool isSend(const Operation& operation) { return operation.send != nullptr; }

// True if kernels read the others' operands where they lie. Not if each rank multiplies by a scalar of its own.
bool reads(const Task& task) { return reduces(task.operation.collective) && task.operation.op != kPreMulSum; }

}  // namespace

Agreement::Subject DirectCopies::subjectOf(const Operation& operation) {
  const uint32_t own = localOf(rank_);
  if (operation.collective == Collective::sendRecv) {
    const bool sends = isSend(operation);
    const uint32_t peer = localOf(operation.peer);
    const uint32_t from = sends ? own : peer, to = sends ? peer : own;
    const uint64_t number = ++(sends ? numbers_.sends : numbers_.receives)[operation.peer];
    return Agreement::Subject::message(own, from, to, number);
  }
  return Agreement::Subject::all(own, ++numbers_.collectives, ranks_);
}

DirectCopies::Announced::All::~All() {
  bool releases = true;
  for (One& one : ones) releases = one.agreement.withdraw() && releases;
  if (!ones.empty() && releases && copies.numbers_ == after) copies.numbers_ = before;
  copies.pending_--;
}

DirectCopies::Announced DirectCopies::announce(std::span<const Task> tasks) {
  Announced announced;
  std::array<std::array<bool, 2>, kMaxPeers> has{};  // a message to, or from, the rank
  for (size_t i = 0; i < tasks.size(); i++) {
    const Operation& operation = tasks[i].operation;
    if ((tasks[i].variant.requires_ & plan::kRequiresPublishedAddresses) == 0) continue;
    if (announced.empty()) announced.all_ = std::make_unique<Announced::All>(*this);
    auto& ones = announced.all_->ones;
    const auto announce = [&](bool able, bool reads, const BufferLocation& location) {
      ones.push_back({Agreement(agreements_, interrupt_, subjectOf(operation)), i, reads});
      ones.back().agreement.publish(able && !queueUser_.holdsUpOthers() ? &location : nullptr);
    };
    BufferLocation location{};
    const bool message = operation.collective == Collective::sendRecv;
    const bool written = message ? !isSend(operation) : receivesCopies(operation.collective, rank_, operation.peer);
    // In place, received data would overwrite data that has not been sent.
    const bool inTheWay = operation.collective == Collective::allToAll && operation.send == operation.receive;
    // A pair has one set of flags, which orders its messages; but none of a group may wait for another.
    const bool another = message && std::exchange(has[operation.peer][isSend(operation)], true);
    if (operation.collective != Collective::reduceScatter)
      announce(!inTheWay && !another && (!written || buffers_.describe(operation.receive, location)), false, location);
    if (reads(tasks[i])) announce(buffers_.describe(operation.send, location), true, location);
  }
  if (!announced.empty()) announced.all_->after = numbers_;
  return announced;
}

void DirectCopies::consent(Announced& announced, uint64_t deadline, const std::function<bool()>& idle) {
  for (Announced::One& one : announced.all_->ones) {
    one.agreement.consent(deadline, [&](uint32_t local, const BufferLocation& location) {
      return buffers_.reach(local, location, idle, one.buffers[plan_.local(local).rank]);
    });
  }
}

DirectCopies::Agreed DirectCopies::settle(Announced announced, uint64_t deadline) {
  Agreed agreed;
  auto& all = announced.all_->ones;
  for (size_t i = 0; i < all.size(); i++) {
    Announced::One& one = all[i];
    const bool direct = one.agreement.settle(deadline);
    failures_ = direct ? 0 : failures_ + 1;
    // An all_reduce whose operands may be read, but whose results cannot be stored, goes by kernels.
    const bool further = i > 0 && all[i - 1].task == one.task;
    if (!direct || (further && !agreed.contains(one.task))) continue;
    Reached& reached = agreed[one.task];
    (one.reads ? reached.sources : reached.targets) = one.buffers;
    reached.reads = one.reads;
  }
  all.clear();
  return agreed;
}

CopyProgram DirectCopies::programFor(const Task& task, const Buffers& targets, size_t bytes) const {
  const Operation& operation = task.operation;
  const uint64_t parts = (bytes + task.variant.chunkBytes - 1) / std::max<uint64_t>(task.variant.chunkBytes, 1);
  const CopyBuffers buffers{pointer(operation.send), pointer(operation.receive), std::span(targets.data(), ranks_)};
  return copyProgramFor(operation.collective, rank_, operation.peer, buffers, bytes,
                        uint32_t(std::clamp<uint64_t>(parts, 1, kCopyParts)));
}

}  // namespace ncclrun::cuda
