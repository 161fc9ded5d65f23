// The default streams that a thread's NULL stream stands for. Ranks of one communicator in one process wait for each
// other, so each needs a default stream of its own: its default-stream slot. A thread is mostly one rank, which keeps
// its slot over all communicators that it joins; a thread with several ranks has as many slots. Threads never share a
// slot: each could queue behind the other the work that the other waits for.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ncclrun {

// Claims a slot for a communicator that the calling thread joins; `taken`: slots of its other ranks in this process.
uint32_t claimDefaultStreamSlot(std::span<const uint32_t> taken);

// Notes that the calling thread queues work on this slot.
void useDefaultStreamSlot(uint32_t slot);

// The slots that the calling thread owns or has used; none if it never joined a communicator.
std::vector<uint32_t> ownDefaultStreamSlots();

}  // namespace ncclrun
