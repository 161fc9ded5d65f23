// The primitives of algorithm/work.h on the host: slots are memory, arithmetic is reduce.h, waiting lets other blocks
// run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "datapath/reduce.h"
#include "host/blocks.h"
#include "net/endpoint.h"

namespace ncclrun {

class HostPrimitives {
 public:
  static constexpr bool kSingleStep = false;

  struct Setup {
    std::span<Endpoint* const> receives;
    std::span<Endpoint* const> sends;
    size_t elementBytes;
    size_t slotBytes;  // at most so many in a step, whatever the connections take: all ranks cut alike
    const Reduction& reduction;
    std::vector<std::byte>& scratch;  // kept from one use to the next
    bool stream;                      // the user's buffers are too large to stay in the caches
    bool lends;                       // connections that can may send from and receive into the user's buffers
  };
  HostPrimitives(Blocks& blocks, const Setup& setup);

  size_t slotElements() const { return slotElements_; }
  size_t slots() const { return slots_; }

  void copy(const void* source, void* target, size_t count);
  // The whole result of a single rank, by the first of the blocks.
  void copyAll(const void* source, void* target, size_t count, uint32_t block, uint32_t blocks);
  void send(uint32_t to, const void* source, size_t count) {
    move({}, sends_.subspan(to, 1), source, 0, nullptr, count);
  }
  void sendAll(const void* source, size_t count, uint32_t first) {
    for (size_t i = 0; i < sends_.size(); i++) send(uint32_t((first + i) % sends_.size()), source, count);
  }
  void sendAndCopy(uint32_t to, const void* source, const void* own, void* target, size_t count) {
    send(to, source, count);
    if (target != nullptr) copy(own, target, count);
  }
  void copySend(const void* source, void* target, uint32_t to, size_t count) {
    move({}, sends_.subspan(to, 1), source, 0, target == source ? nullptr : target, count);
  }
  void receive(uint32_t from, void* target, size_t count) {
    move(receives_.subspan(from, 1), {}, nullptr, 0, target, count);
  }
  void receiveSend(uint32_t from, uint32_t to, void* target, size_t count) {
    move(receives_.subspan(from, 1), sends_.subspan(to, 1), nullptr, 0, target, count);
  }
  void receiveReduceSend(uint32_t from, const void* own, uint32_t to, size_t count) {
    move(receives_.subspan(from, 1), sends_.subspan(to, 1), own, 1, nullptr, count);
  }
  void receiveReduceCopy(uint32_t from, const void* own, void* target, size_t count) {
    move(receives_.subspan(from, 1), {}, own, 1, target, count);
  }
  void receiveReduceCopySend(uint32_t from, const void* own, void* target, uint32_t to, size_t count) {
    move(receives_.subspan(from, 1), sends_.subspan(to, 1), own, 1, target, count);
  }
  void reduceAll(const void* own, uint32_t ownIndex, void* target, bool forward, size_t count) {
    move(receives_, forward ? sends_ : std::span<Endpoint* const>{}, own, ownIndex, target, count);
  }
  void merge(uint32_t from, uint32_t receiveCount, const void* own, void* target, uint32_t to, uint32_t sendCount,
             size_t count) {
    move(receives_.subspan(from, receiveCount), sends_.subspan(to, sendCount), own, receiveCount, target, count);
  }
  void finishSends();
  // The last call: afterwards no connection touches the user's buffers.
  void finish();
  void signal(uint32_t to);
  void await(uint32_t from);

 private:
  // Waits for every slot of `from` and `to`; reduces the slots of `from`, with `own` (if not null) as number `ownIndex`
  // of them, into the slots of `to` and `target` (if not null); posts and releases all slots.
  void move(std::span<Endpoint* const> from, std::span<Endpoint* const> to, const void* own, uint32_t ownIndex,
            void* target, size_t count);
  bool arrivedRight(const Endpoint& end, uint32_t bytes);
  // That much is sent from and received into the user's buffers where the connection can.
  bool lends(const Endpoint& end, size_t bytes) const { return lends_ && bytes >= kLentBytes && end.lends(); }
  // Returns false if a peer is gone. Where the peer has free slots, no wait would detect that.
  bool allTake(std::span<Endpoint* const> to);
  // Into targets_[0, count) from sources_.
  void combine(uint32_t targetCount, uint32_t sourceCount, size_t count, bool stream);
  const void* scaled(const void* own, size_t count);

  Blocks& blocks_;
  const std::span<Endpoint* const> receives_;
  const std::span<Endpoint* const> sends_;
  const size_t elementBytes_;
  const size_t slotElements_;
  const size_t slots_;
  const Reduction& reduction_;
  std::vector<std::byte>& scratch_;
  const bool stream_;
  const bool lends_;
  bool hasLent_ = false;    // to a connection that sends, since finishSends()
  bool hasWanted_ = false;  // a connection may receive into the user's buffer
  bool ended_ = false;      // interrupted: do nothing from now on
  // Of the step under way. Few connections need no memory from the heap.
  static constexpr size_t kFew = 16;
  // Below, copying takes less time than waiting until it was sent.
  static constexpr size_t kLentBytes = 16 * 1024;
  const void* fewSources_[kFew];
  void* fewTargets_[kFew];
  std::vector<const void*> manySources_;
  std::vector<void*> manyTargets_;
  const void** sources_ = fewSources_;
  void** targets_ = fewTargets_;
};

}  // namespace ncclrun
