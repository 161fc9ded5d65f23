// Whom the operations that a communicator has queued on a GPU may wait for: more than they do, never fewer. Kernels do
// not say whom they wait for.
#pragma once
#include <algorithm>
#include <cstdint>
#include <set>
#include <span>

#include "base/clock.h"
#include "datapath/data_path.h"

namespace ncclrun::cuda {

class AwaitedPeers {
 public:
  struct Caller {
    uint32_t rank, ranks;
  };
  // The operations, about to be queued, need fewer peers than those before: a mark among the launches is worth its
  // while, by which to know later that those before have ended. Seldom true, because a mark takes a few calls of the
  // driver.
  bool wantsMark(std::span<const Operation> operations, Caller self) {
    if (needsFewer(before_, operations, self) || needsFewer(since_, operations, self)) {
      const uint64_t now = nowNanoseconds();
      if (now - markedAt_ > kBetweenMarks) {
        markedAt_ = now;
        return true;
      }
    }
    return false;
  }
  // isMarked: behind all launches so far.
  void add(std::span<const Operation> operations, Caller self, bool isMarked) {
    if (isMarked) {
      before_.isEveryone = before_.isEveryone || since_.isEveryone;
      before_.some.merge(since_.some);
      since_ = {};
    }
    for (const Operation& operation : operations) {
      if (isCollective(operation)) collectives_ = operation.hashed;
      if (isForAll(operation, self)) {
        since_.isEveryone = true;
      } else if (const uint32_t peer = peerOf(operation, self); peer != self.rank) {
        since_.some.insert(peer);
      }
    }
  }
  // What was queued before the last mark has ended.
  void passedMark() { before_ = {}; }

  bool mayInclude(uint32_t peer) const { return before_.has(peer) || since_.has(peer); }
  bool areOnly(uint32_t peer) const {
    return before_.hasNoOtherThan(peer) && since_.hasNoOtherThan(peer) && mayInclude(peer);
  }
  // Number of the last collective that was queued.
  uint64_t collectives() const { return collectives_; }

 private:
  static constexpr uint64_t kBetweenMarks = 10'000'000;  // nanoseconds

  struct Peers {
    bool isEveryone = false;
    std::set<uint32_t> some;

    bool has(uint32_t peer) const { return isEveryone || some.contains(peer); }
    bool hasNoOtherThan(uint32_t peer) const { return !isEveryone && some.size() == some.count(peer); }
  };

  static bool isCollective(const Operation& operation) { return operation.collective != plan::Collective::sendRecv; }
  // Of two ranks, everyone is the other one.
  static bool isForAll(const Operation& operation, Caller self) { return isCollective(operation) && self.ranks != 2; }
  static uint32_t peerOf(const Operation& operation, Caller self) {
    return isCollective(operation) ? 1 - self.rank : operation.peer;
  }
  static bool needsFewer(const Peers& than, std::span<const Operation> operations, Caller self) {
    if (std::ranges::any_of(operations, [&](const Operation& one) { return isForAll(one, self); })) return false;
    if (than.isEveryone) return true;
    return std::ranges::any_of(than.some, [&](uint32_t peer) {
      return std::ranges::none_of(operations, [&](const Operation& one) { return peerOf(one, self) == peer; });
    });
  }

  Peers before_, since_;  // of operations queued before the last mark, and since
  uint64_t collectives_ = 0;
  uint64_t markedAt_ = 0;
};

}  // namespace ncclrun::cuda
