#include "datapath/launch.h"

#include "base/element.h"
#include "datapath/reduce.h"

namespace ncclrun {
namespace {

// Such that bytes of all ranks' buffers together fit into 64 bits.
constexpr uint64_t kMaxElements = 1ull << 40;

}  // namespace

std::string nameOf(ncclDataType_t type) {
  static constexpr const char* kNames[] = {"int8",    "uint8",   "int32",   "uint32",   "int64",      "uint64",
                                           "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  return size_t(type) < std::size(kNames) ? kNames[type] : "data type " + std::to_string(int(type));
}

std::string nameOf(ncclRedOp_t op) {
  static constexpr const char* kNames[] = {"sum", "prod", "max", "min", "avg", "pre-multiplied sum"};
  return size_t(op) < std::size(kNames) ? kNames[op] : std::to_string(int(op));
}

bool reduces(plan::Collective collective) {
  return collective == plan::Collective::allReduce || collective == plan::Collective::reduceScatter ||
         collective == plan::Collective::reduce;
}

uint64_t deciding(const Operation& operation, uint32_t ranks) {
  const uint64_t bytes = uint64_t(operation.count) * elementBytes(operation.type);
  switch (operation.collective) {
    case plan::Collective::allGather:
    case plan::Collective::reduceScatter:
    case plan::Collective::allToAll:
    case plan::Collective::gather:
    case plan::Collective::scatter:
      return bytes * ranks;
    case plan::Collective::barrier:
      return 0;
    default:
      return bytes;
  }
}

// Every operation calls this, so it builds strings only for errors.
Status chooseVariant(const PlanView& plan, uint32_t satisfied, Task& task) {
  const auto device = plan::Device(plan.header().device);
  const auto& operation = task.operation;
  const auto name = [&] { return std::string(nameOf(operation.collective)); };
  const auto which = [&] { return "the " + std::string(nameOf(device)) + " device"; };
  if (elementBytes(operation.type) == 0) {
    return {ncclInvalidArgument, name() + ": there is no data type " + std::to_string(int(operation.type))};
  }
  if (reduces(operation.collective) && (int(operation.op) < 0 || int(operation.op) > int(kPreMulSum))) {
    return {ncclInvalidUsage, name() + ": " + which() + " does not reduce " + nameOf(operation.type) +
                                  " with operator " + nameOf(operation.op)};
  }
  if (operation.count > kMaxElements) {
    return {ncclInvalidArgument, name() + " of " + std::to_string(operation.count) + " elements: no memory holds that"};
  }
  task.bytes = deciding(operation, plan.header().ranks);
  const uint64_t size = operation.chosenAs == kOwnBytes ? task.bytes : operation.chosenAs;
  for (uint32_t row = plan.firstTuning(operation.collective); row < plan.header().tuningTable.count; row++) {
    const auto record = plan.tuning(row);
    if (record.collective != uint8_t(operation.collective)) break;
    if (size > record.upToBytes) continue;
    for (uint32_t i = 0; i < record.variantCount; i++) {
      task.variant = plan.variant(record.firstVariant + i);
      if ((task.variant.requires_ & ~satisfied) == 0) return {};  // a variant of the device: PlanView has checked it
    }
    break;
  }
  return {ncclInvalidUsage,
          name() + " of " + std::to_string(task.bytes) + " bytes: the plan has no variant for it on " + which()};
}

Status variantAt(const PlanView& plan, uint32_t satisfied, plan::Collective collective, uint64_t bytes,
                 ncclrunVariant& out) {
  Task task;
  task.operation.collective = collective;
  task.operation.chosenAs = bytes;
  NCCLRUN_TRY(chooseVariant(plan, satisfied, task));
  out = {task.variant.algorithm, task.variant.protocol, task.variant.channels, task.variant.threads, kOwnBytes};
  for (uint32_t row = plan.firstTuning(collective); row < plan.header().tuningTable.count; row++) {
    const auto record = plan.tuning(row);
    if (record.collective != uint8_t(collective) || bytes > record.upToBytes) continue;
    out.upToBytes = record.upToBytes;
    break;
  }
  return {};
}

double predictedMicroseconds(const Task& task) {
  constexpr double kMebibyte = 1 << 20;
  return double(task.variant.predictedMicroseconds) +
         double(task.variant.predictedMicrosecondsPerMebibyte) * double(task.bytes) / kMebibyte;
}

}  // namespace ncclrun
