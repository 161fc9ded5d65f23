// The copies that one rank's copy engines do for an operation: which parts of which buffers go where, and in which
// order. Nothing here touches a GPU.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "datapath/data_path.h"
#include "dl/cuda.h"

namespace ncclrun::cuda {

inline constexpr uint32_t kNotSignalled = ~0u;

struct Copy {
  uint32_t peer;  // whose buffer is written; the rank itself: its own
  Pointer to, from;
  size_t bytes;
  uint32_t part;  // signalled to the peer when all copies to it so far have arrived; or kNotSignalled
};
// The arrival of one part from a peer.
struct Arrival {
  uint32_t peer, part;
};
// Copies that begin once their data has arrived.
struct CopyStage {
  std::vector<Arrival> after;
  std::vector<Copy> copies;
};
struct CopySender {
  uint32_t peer;
  uint64_t bytes;
};
struct CopyProgram {
  std::vector<CopySender> senders;  // ranks that store into this rank's buffer
  std::vector<CopyStage> stages;
  std::vector<Arrival> last;  // the arrivals that end the program
  // True for messages: each copy waits for its own peer only, because the peers need not be ready at the same time.
  bool independent = false;
  // True if all ranks' buffers are known to be ready.
  bool peersReady = false;
};

// The buffers of an operation; `targets`: where each rank's receive buffer lies for this GPU.
struct CopyBuffers {
  Pointer send, receive;
  std::span<const Pointer> targets;
};

// The program of an all_gather, alltoall, gather, scatter or broadcast, or the all-gather phase of an all_reduce, where
// `bytes` is the size of a rank's part. `parts`: number of parts of a broadcast, at most kCopyParts.
CopyProgram copyProgramFor(plan::Collective collective, uint32_t rank, uint32_t root, const CopyBuffers& buffers,
                           size_t bytes, uint32_t parts);

// Whether others store into the receive buffer of a rank.
bool receivesCopies(plan::Collective collective, uint32_t rank, uint32_t root);
// Whose receive buffers a rank stores into.
std::vector<uint32_t> copiesTo(plan::Collective collective, uint32_t rank, uint32_t ranks, uint32_t root);

}  // namespace ncclrun::cuda
