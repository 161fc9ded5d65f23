// Agreement of the ranks of one operation on whether they store into each other's buffers directly. Each rank publishes
// where its buffer lies; a rank that has seen and can reach the buffers that it needs consents. The verdict is one word
// that all poll: `direct` when the last rank has consented, or `other`, for good, when one cannot or its deadline has
// passed. So no call waits for a peer longer than its deadline, and all ranks choose the same variant.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "datapath/interrupt.h"
#include "plan/segment_format.h"

namespace ncclrun {

class Agreement {
 public:
  // The pair of ranks whose records it uses, and its number there, from 1: the ranks that take part count alike. The
  // verdict of a collective lies at the pair of local rank 0 with itself, and each rank publishes at its own pair with
  // itself; a message uses the pair of its sender and its receiver, which publishes there.
  struct Subject {
    uint32_t own, from, to;  // local ranks
    uint64_t number;
    uint32_t ranks;  // number of ranks that take part: all in a collective, two in a message
    bool ofAll;

    static Subject all(uint32_t own, uint64_t number, uint32_t ranks) { return {own, 0, 0, number, ranks, true}; }
    static Subject message(uint32_t own, uint32_t from, uint32_t to, uint64_t number) {
      return {own, from, to, number, 2, false};
    }
  };
  // Finds the address of a local rank's buffer on this GPU. Returns false if it cannot be reached.
  using Reach = std::function<bool(uint32_t local, const BufferLocation& location)>;

  // Waits also end when the communicator is interrupted.
  Agreement(const AgreementTable& table, const Interrupt& interrupt, Subject subject)
      : table_(table), interrupt_(interrupt), subject_(subject) {}

  // Publishes this rank's buffer. Null: no peer may store into it, so the verdict is `other` at once.
  void publish(const BufferLocation* location);
  // Consents as soon as all buffers that this rank needs are published; waits until `deadline` (nowNanoseconds()).
  void consent(uint64_t deadline, const Reach& reach);
  // Waits for the verdict until `deadline`, then decides. Returns true for direct.
  bool settle(uint64_t deadline);
  // Called instead if the operation is not queued. Returns false if the others already rely on it.
  bool withdraw();

 private:
  enum class State : uint64_t { open = 0, direct = 1, other = 2 };
  enum class Seen { missing, reached, never };

  std::atomic<uint64_t>& verdict() const { return table_.at(subject_.from, subject_.to, subject_.number).verdict; }
  // The record in which the local rank publishes.
  AgreementRecord& recordOf(uint32_t local) const {
    return subject_.ofAll ? table_.at(local, local, subject_.number)
                          : table_.at(subject_.from, subject_.to, subject_.number);
  }
  bool allOthers(const std::function<bool(uint32_t local)>& holds) const;  // whose buffers are needed
  bool decided(State& state);
  void give(State state, bool consents);
  Seen look(const Reach& reach);
  bool waits(uint64_t deadline);

  const AgreementTable table_;
  const Interrupt& interrupt_;
  const Subject subject_;
  bool consented_ = false;
  bool seen_ = false;  // this rank has counted itself among those that have seen `direct`
  uint32_t looks_ = 0;
};

}  // namespace ncclrun
