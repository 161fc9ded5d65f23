// What the copy engines of one rank do for an operation: which parts of which buffers go where, and after what. Nothing
// here touches a GPU.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "datapath/data_path.h"
#include "dl/cuda.h"

namespace ncclrun::cuda {

inline constexpr uint32_t kNotTold = ~0u;

struct Copy {
  uint32_t peer;  // into whose buffer; the rank itself: its own
  Pointer to, from;
  size_t bytes;
  uint32_t part;  // told to the peer as arrived when all copies to it so far are there; kNotTold
};
// That part of a peer's has arrived here.
struct Arrival {
  uint32_t peer, part;
};
// Copies that begin once what they are about has arrived.
struct CopyStage {
  std::vector<Arrival> after;
  std::vector<Copy> copies;
};
struct CopySender {
  uint32_t peer;
  uint64_t bytes;
};
struct CopyProgram {
  std::vector<CopySender> senders;  // who store into this rank's buffer
  std::vector<CopyStage> stages;
  std::vector<Arrival> last;  // what has to be here at the end
  // Each copy waits for its own peer alone: of messages, whose peers need not be ready at the same time.
  bool apart = false;
  // The ranks have met: nobody waits for another's buffer.
  bool met = false;
};

// The buffers of an operation; `targets`: where each rank's receive buffer lies for this GPU.
struct CopyBuffers {
  Pointer send, receive;
  std::span<const Pointer> targets;
};

// Of all_gather, alltoall, gather, scatter, broadcast; of an all_reduce, how each rank's part, which is reduced, comes
// to all: `bytes` is that of a part. `parts`: into how many a broadcast is cut, at most kCopyParts.
CopyProgram copyProgramFor(plan::Collective collective, uint32_t rank, uint32_t root, const CopyBuffers& buffers,
                           size_t bytes, uint32_t parts);

// Whether others store into the receive buffer of a rank.
bool receivesCopies(plan::Collective collective, uint32_t rank, uint32_t root);
// Whose receive buffers a rank stores into.
std::vector<uint32_t> copiesTo(plan::Collective collective, uint32_t rank, uint32_t ranks, uint32_t root);

}  // namespace ncclrun::cuda
