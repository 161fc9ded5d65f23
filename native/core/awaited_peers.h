// Whom the operations that a communicator has queued on a GPU may wait for: more than they do, never fewer. Kernels do
// not say whom they wait for.
#pragma once
#include <cstdint>
#include <span>

#include "core/clock.h"
#include "core/data_path.h"

namespace ncclrun::cuda {

class AwaitedPeers {
 public:
  // Before operations are queued. `isIdle`: nothing that was queued before is under way; asked for rarely, because that
  // takes a few calls of the driver.
  template <class IsIdle>
  void add(std::span<const Operation> operations, uint32_t rank, IsIdle&& isIdle) {
    uint64_t peers = 0;
    for (const Operation& operation : operations) {
      const bool isCollective = operation.collective != plan::Collective::sendRecv;
      peers |= isCollective ? ~uint64_t(0) : uint64_t(1) << operation.peer;
      if (isCollective) collectives_ = operation.hashed;
    }
    peers &= ~(uint64_t(1) << rank);
    if ((peers_ & ~peers) != 0) {
      const uint64_t now = nowNanoseconds();
      if (now - lookedAt_ > kBetweenLooks) {
        lookedAt_ = now;
        if (isIdle()) peers_ = 0;
      }
    }
    peers_ |= peers;
  }

  bool mayInclude(uint32_t peer) const { return (peers_ >> peer & 1) != 0; }
  bool areOnly(uint32_t peer) const { return peers_ == uint64_t(1) << peer; }
  // Number of the last collective that was queued.
  uint64_t collectives() const { return collectives_; }

 private:
  static constexpr uint64_t kBetweenLooks = 10'000'000;  // nanoseconds
  uint64_t peers_ = 0;                                   // by rank
  uint64_t collectives_ = 0;
  uint64_t lookedAt_ = 0;
};

}  // namespace ncclrun::cuda
