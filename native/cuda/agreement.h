// Whether the ranks of one operation store into each other's buffers directly. Each tells where its buffer lies, at its
// call; whoever has seen what it needs, and reaches it, consents. The verdict is one word that all look at: `direct`
// when the last has consented, or `other`, for good, when one cannot, or has waited long enough. So no call waits for a
// peer's for longer than it likes to, and all come to the same form.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "datapath/interrupt.h"
#include "plan/segment_format.h"

namespace ncclrun {

class Agreement {
 public:
  // The way whose words it is about, and its number there, from 1: the ranks that take part count alike. An operation
  // of all ranks has the way from local rank 0 to itself, and each rank tells on its own way to itself; a message has
  // the way from its sender to its receiver, who tells there.
  struct Subject {
    uint32_t own, from, to;  // local ranks
    uint64_t number;
    uint32_t ranks;  // that take part: 0, 1, … of an operation of all, two of a message
    bool ofAll;

    static Subject all(uint32_t own, uint64_t number, uint32_t ranks) { return {own, 0, 0, number, ranks, true}; }
    static Subject message(uint32_t own, uint32_t from, uint32_t to, uint64_t number) {
      return {own, from, to, number, 2, false};
    }
  };
  // Finds where the buffer of a local rank lies for us. False: it cannot be reached.
  using Reach = std::function<bool(uint32_t local, const BufferPlace& place)>;

  // Waits end when the communicator is interrupted, too.
  Agreement(const AgreementTable& table, const Interrupt& interrupt, Subject subject)
      : table_(table), interrupt_(interrupt), subject_(subject) {}

  // Null: nobody must, or can, store into ours: the verdict is `other`, at once.
  void tell(const BufferPlace* place);
  // Consents as soon as all that is needed is there; waits for it until `deadline` (nowNanoseconds()).
  void consent(uint64_t deadline, const Reach& reach);
  // Waits for the verdict until `deadline`, then gives it. True: direct.
  bool settle(uint64_t deadline);
  // In place of that: the operation is not queued. False: the others count on it already.
  bool withdraw();

 private:
  enum class State : uint64_t { open = 0, direct = 1, other = 2 };
  enum class Seen { missing, reached, never };

  std::atomic<uint64_t>& verdict() const { return table_.at(subject_.from, subject_.to, subject_.number).verdict; }
  // Where the local rank tells.
  AgreementRecord& recordOf(uint32_t local) const {
    return subject_.ofAll ? table_.at(local, local, subject_.number)
                          : table_.at(subject_.from, subject_.to, subject_.number);
  }
  bool allOthers(const std::function<bool(uint32_t local)>& holds) const;  // whose places are needed
  bool decided(State& state);
  void give(State state, bool consents);
  Seen look(const Reach& reach);
  bool waits(uint64_t deadline);

  const AgreementTable table_;
  const Interrupt& interrupt_;
  const Subject subject_;
  bool consented_ = false;
  bool seen_ = false;  // the word knows that we have seen that it says `direct`
  uint32_t looks_ = 0;
};

}  // namespace ncclrun
