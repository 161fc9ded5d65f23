// What a step over a socket says of itself: the call that it belongs to. So a rank whose calls differ from a peer's on
// another host learns it from the first step that comes, and who called what; ranks of one host are compared by their
// agent.
#pragma once
#include <cstdint>
#include <string>

#include "datapath/data_path.h"

namespace ncclrun {

// Little-endian on the wire.
struct StepCall {
  uint64_t number = 0;  // among the communicator's collectives, from 1; of a send or receive: of the last one before it
  uint64_t before = 0;  // rolling hash of the collectives before this one
  uint64_t hash = 0;    // the same with this one
  uint64_t count = 0;   // elements, as in the call
  uint32_t root = 0;
  uint8_t collective = uint8_t(plan::Collective::sendRecv);
  uint8_t type = 0;
  uint8_t op = 0;
  uint8_t reserved = 0;

  bool isCollective() const { return collective != uint8_t(plan::Collective::sendRecv); }
};
static_assert(sizeof(StepCall) == 40);

// The call that a rank is in.
struct OwnCall {
  std::string rank;  // "rank 3 on host h2"
  StepCall call;
};

// Of any operation; `last`: what was called before it.
StepCall callOf(const Operation& operation, const StepCall& last);

// A step of `theirs` may arrive in `ours`.
inline bool sameCall(const StepCall& theirs, const StepCall& ours) {
  if (theirs.isCollective() != ours.isCollective()) return false;
  return !ours.isCollective() || (theirs.number == ours.number && theirs.hash == ours.hash);
}
// A step of `theirs` that nobody has read while we are in `ours` will never be read.
inline bool isLeftOver(const StepCall& theirs, const StepCall& ours) {
  if (!theirs.isCollective() || theirs.number > ours.number) return false;
  return theirs.number < ours.number || !ours.isCollective() || theirs.hash != ours.hash;
}

// "allReduce of 1000 int32 with sum"
std::string describe(const StepCall& call);
// The sentence for a rank that is in `own` when a step of `theirs` comes from `peer` ("rank 3 on host h2").
std::string describeMismatch(const StepCall& theirs, const std::string& peer, const OwnCall& own);

// The operation names one rank, from which or to which the data go.
bool hasRoot(plan::Collective collective);

}  // namespace ncclrun
