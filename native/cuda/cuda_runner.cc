#include "cuda/cuda_runner.h"

#include "base/element.h"

namespace ncclrun::cuda {
namespace {

using plan::Collective;

// Elements: alignment of the parts of an all_reduce.
constexpr size_t kPartGrain = 128;

size_t bytesOf(const Operation& operation) { return operation.count * elementBytes(operation.type); }

}  // namespace

Status Runner::run(std::span<const Task> tasks, const DirectCopies::Agreed& agreed, const Where& where) {
  if (agreed.empty()) return launcher_.run(tasks, where.stream);
  std::vector<Message> direct;
  std::vector<Task> byKernels;
  const auto reachedBy = [&](size_t task) {
    const auto found = agreed.find(task);
    return found == agreed.end() ? nullptr : &found->second;
  };
  for (size_t i = 0; i < tasks.size(); i++) {
    if (tasks[i].operation.collective != Collective::sendRecv) continue;
    if (reachedBy(i) != nullptr) {
      direct.push_back({&tasks[i], reachedBy(i)});
    } else {
      byKernels.push_back(tasks[i]);
    }
  }
  Status status = runMessages(direct, byKernels, where);
  byKernels.clear();
  for (size_t i = 0; i < tasks.size() && status.ok(); i++) {
    if (tasks[i].operation.collective == Collective::sendRecv) continue;
    if (reachedBy(i) == nullptr) {
      byKernels.push_back(tasks[i]);
      continue;
    }
    status = launcher_.run(byKernels, where.stream);
    byKernels.clear();
    if (status.ok()) status = runCollective(tasks[i], *reachedBy(i), where);
  }
  return status.ok() ? launcher_.run(byKernels, where.stream) : status;
}

// Runs at most one direct message for each peer and direction; kernels move the other messages beside them.
Status Runner::runMessages(const std::vector<Message>& direct, const std::vector<Task>& others, const Where& where) {
  if (direct.empty()) return launcher_.run(others, where.stream);
  CopyProgram program{.senders = {}, .stages = {{}}, .last = {}};
  for (const auto& [task, reached] : direct) {
    const Operation& operation = task->operation;
    const uint32_t peer = operation.peer;
    if (isSend(*task)) {
      program.stages[0].copies.push_back(
          {peer, reached->targets[peer], pointer(operation.send), bytesOf(operation), 0});
    } else {
      program.senders.push_back({peer, bytesOf(operation)});
      program.last.push_back({peer, 0});
    }
  }
  // A single message has no other one to wait for.
  program.independent = program.stages[0].copies.size() > 1 || !others.empty();
  CopyEngines& engines = copies_->engines();
  Status status = engines.begin(program, where.stream, where.capture);
  if (status.ok()) status = launcher_.run(others, where.stream);
  return status.ok() ? engines.end(program) : status;
}

Status Runner::runCollective(const Task& task, const DirectCopies::Reached& reached, const Where& where) {
  const Operation& operation = task.operation;
  if (operation.collective == Collective::reduceScatter) return runScatter(task, reached.sources, where);
  size_t bytes = bytesOf(operation);
  if (operation.collective == Collective::allReduce) {
    const size_t part = operation.count / plan_.header().ranks / kPartGrain * kPartGrain;
    NCCLRUN_TRY(reduceParts(task, reached, part, where));
    bytes = part * elementBytes(operation.type);
  }
  CopyProgram program = copies_->programFor(task, reached.targets, bytes);
  program.peersReady = reached.reads;
  Status status = copies_->engines().begin(program, where.stream, where.capture);
  return status.ok() ? copies_->engines().end(program) : status;
}

Status Runner::runScatter(const Task& task, const DirectCopies::Buffers& sources, const Where& where) {
  Status status = pull(task, sources, where);
  return status.ok() ? copies_->engines().endReads(where.stream) : status;
}

// Reduces this rank's part of all operands where they lie: the task's own and `sources`, whole buffers.
Status Runner::pull(const Task& task, const DirectCopies::Buffers& sources, const Where& where) {
  const size_t bytes = bytesOf(task.operation), begin = rank_ * bytes;
  Task own = task;
  own.operation.send = static_cast<const char*>(task.operation.send) + begin;
  DirectCopies::Buffers parts = sources;
  for (Pointer& part : parts) part += begin;
  Status status = copies_->engines().beginReads(where.stream, bytes);
  return status.ok() ? launcher_.pull(own, std::span(parts.data(), plan_.header().ranks), where.stream) : status;
}

// The reduction of an all_reduce: this rank's part, and the remainder at every rank.
Status Runner::reduceParts(const Task& task, const DirectCopies::Reached& reached, size_t part, const Where& where) {
  const uint32_t ranks = plan_.header().ranks;
  const size_t element = elementBytes(task.operation.type), done = part * ranks;
  Task own{.operation = task.operation, .variant = task.variant}, left{.operation = task.operation};
  own.operation.collective = Collective::reduceScatter;
  own.operation.receive = static_cast<char*>(own.operation.receive) + rank_ * part * element;
  own.operation.count = part;
  left.operation.send = static_cast<const char*>(left.operation.send) + done * element;
  left.operation.receive = static_cast<char*>(left.operation.receive) + done * element;
  left.operation.count -= done;
  std::vector<Task> tasks;
  if (reached.reads) {
    NCCLRUN_TRY(pull(own, reached.sources, where));
  } else {
    tasks.push_back(own);
  }
  if (left.operation.count > 0) tasks.push_back(left);
  for (Task& one : tasks) {
    one.operation.chosenAs = kOwnBytes;
    NCCLRUN_TRY(chooseVariant(plan_, where.satisfied, one));
  }
  return launcher_.run(tasks, where.stream);
}

}  // namespace ncclrun::cuda
