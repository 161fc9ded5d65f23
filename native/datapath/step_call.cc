#include "datapath/step_call.h"

#include <algorithm>

#include "datapath/launch.h"

namespace ncclrun {
namespace {

using plan::Collective;

}  // namespace

bool hasRoot(plan::Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

StepCall callOf(const Operation& operation, const StepCall& last) {
  StepCall call;
  call.number = last.number;
  if (operation.collective == Collective::sendRecv) return call;
  call.number = operation.hashed;
  call.before = operation.before;
  call.hash = operation.hash;
  call.count = operation.count;
  call.root = operation.peer;
  call.collective = uint8_t(operation.collective);
  call.type = uint8_t(operation.type);
  call.op = uint8_t(operation.op);
  return call;
}

std::string describe(const StepCall& call) {
  const auto collective = Collective(call.collective);
  if (!call.isCollective()) return "a send or receive";
  if (collective == Collective::barrier) return "a barrier";
  std::string text = nameOf(collective);
  text += " of " + std::to_string(call.count) + " " + nameOf(ncclDataType_t(call.type));
  if (reduces(collective)) text += " with " + nameOf(ncclRedOp_t(call.op));
  if (hasRoot(collective)) text += ", root " + std::to_string(call.root);
  return text;
}

std::string describeMismatch(const StepCall& theirs, const std::string& peer, const OwnCall& own) {
  const StepCall& ours = own.call;
  const std::string they = peer + " called " + describe(theirs);
  const std::string we = own.rank + " called " + describe(ours);
  if (!theirs.isCollective() || !ours.isCollective()) return "the ranks’ calls differ: " + they + "; " + we;
  if (theirs.number == ours.number && theirs.before == ours.before) {
    return "the ranks’ calls differ from the communicator’s collective number " + std::to_string(ours.number) + ": " +
           they + "; " + we;
  }
  return "the ranks’ calls differ at or before the communicator’s collective number " +
         std::to_string(std::min(theirs.number, ours.number)) + ": " + they + " as number " +
         std::to_string(theirs.number) + "; " + we + " as number " + std::to_string(ours.number);
}

}  // namespace ncclrun
