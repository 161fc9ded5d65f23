// Whom the operations that a communicator has queued on a GPU may wait for: more than they do, never fewer. Kernels do
// not say whom they wait for.
#pragma once
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "datapath/data_path.h"

namespace ncclrun::cuda {

class AwaitedPeers {
 public:
  // Before operations are queued. Where they need other peers than those before, it marks that place among the
  // launches, to know later that those before have ended. `mark` does so and says whether it could: rarely asked for,
  // because it takes a few calls of the driver.
  template <class Mark>
  void add(std::span<const Operation> operations, uint32_t rank, Mark&& mark) {
    uint64_t peers = 0;
    for (const Operation& operation : operations) {
      const bool isCollective = operation.collective != plan::Collective::sendRecv;
      peers |= isCollective ? ~uint64_t(0) : uint64_t(1) << operation.peer;
      if (isCollective) collectives_ = operation.hashed;
    }
    peers &= ~(uint64_t(1) << rank);
    if ((all() & ~peers) != 0 && nowNanoseconds() - markedAt_ > kBetweenMarks) {
      markedAt_ = nowNanoseconds();
      if (mark()) {
        before_ |= since_;
        since_ = 0;
      }
    }
    since_ |= peers;
  }
  // What was queued before the last mark has ended.
  void passedMark() { before_ = 0; }

  bool mayInclude(uint32_t peer) const { return (all() >> peer & 1) != 0; }
  bool areOnly(uint32_t peer) const { return all() == uint64_t(1) << peer; }
  // Number of the last collective that was queued.
  uint64_t collectives() const { return collectives_; }

 private:
  static constexpr uint64_t kBetweenMarks = 10'000'000;  // nanoseconds

  uint64_t all() const { return before_ | since_; }
  // By rank: of operations queued before the last mark, and since.
  uint64_t before_ = 0, since_ = 0;
  uint64_t collectives_ = 0;
  uint64_t markedAt_ = 0;
};

}  // namespace ncclrun::cuda
