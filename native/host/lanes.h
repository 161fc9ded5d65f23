// Which default streams a thread speaks of when it says NULL. Ranks of one communicator that live in one process wait
// for each other, so each needs a default stream of its own: its lane. A thread is mostly one rank, which keeps its
// lane over all communicators that it joins; a thread that holds several ranks has as many lanes. Threads never share
// one: each could queue behind the other what the other waits for.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ncclrun {

// A lane for a communicator that the calling thread joins; `taken`: by other ranks of that communicator.
uint32_t claimLane(std::span<const uint32_t> taken);

// The calling thread queues something on this lane.
void useLane(uint32_t lane);

// The calling thread's lanes and those that it has used; none if it never joined a communicator.
std::vector<uint32_t> ownLanes();

}  // namespace ncclrun
