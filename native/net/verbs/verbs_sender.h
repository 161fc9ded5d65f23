// The sending side of a connection over verbs.
#pragma once
#include <array>
#include <deque>
#include <memory>

#include "net/net.h"
#include "net/verbs/verbs_link.h"

namespace ncclrun::net {

class VerbsSender final : public Sender {
 public:
  explicit VerbsSender(std::unique_ptr<VerbsLink> link) : link_(std::move(link)) {}

  Status registerMemory(const Region& region, Registration& out) override { return link_->registerMemory(region, out); }
  Status deregisterMemory(Registration registration) override { return link_->deregisterMemory(registration); }
  Status isend(const void* data, size_t bytes, int tag, Registration registration, Request*& out) override;
  Status test(Request* request, bool& done, std::span<size_t> sizes) override;

 private:
  struct Message {
    const void* data = nullptr;
    size_t bytes = 0;
    const VerbsLink::Registered* memory = nullptr;
    bool isOpen = false;  // until test() has reported it
    bool isSent = false;
  };
  // The messages of one irecv of the other side.
  struct Group {
    std::array<Message, kMaxGroup> messages;
    uint32_t filled = 0;    // messages that isend has given
    uint32_t open = 0;      // of these, those that test() has not reported
    uint32_t waitsFor = 0;  // completions of queue pairs

    // All of it has arrived.
    void finish() {
      waitsFor = 0;
      for (Message& message : messages) message.isSent = true;
    }
  };
  // A chain of requests for one queue pair, built before any is posted.
  struct Chain {
    std::array<verbs::SendWorkRequest, QueuePairHandle::kSends> requests;
    std::array<verbs::ScatterGather, QueuePairHandle::kSends> entries;
    uint32_t count = 0;
  };

  // What a request reads, and writes to.
  struct Source {
    uint64_t address;
    uint32_t key;
    bool mayInline;  // the processor can read it
  };
  struct Target {
    uint64_t address;
    uint32_t key;
  };

  Group& groupOf(uint64_t number) { return groups_[number % kGroupSlots]; }
  const AdvertisementSlot& advertised(uint64_t number) const;
  // Moves what can be moved.
  Status progress();
  Status poll();
  // The place in the group of a buffer of this tag that has no message yet; -1: there is none.
  int placeOf(uint64_t number, int tag);
  // Whether every queue pair that the group goes over has room for it.
  bool hasRoom(uint64_t number, size_t bytes) const;
  Status launch(uint64_t number);
  // Launches once more what had not arrived before a move, as far as it is advertised again.
  Status relaunch();
  // While the link moves: whether it has resumed.
  Status move(bool& resumed);
  void write(const Source& from, const Target& to, size_t begin, size_t end);
  void announce();
  Status post(QueuePairHandle& pair, uint64_t number, uint32_t index, bool sizesFollow);

  const std::unique_ptr<VerbsLink> link_;
  std::array<Group, kGroupSlots> groups_;
  uint64_t known_ = 0;         // groups that are advertised
  uint64_t next_ = 0;          // the group that isend fills
  std::deque<uint64_t> lost_;  // groups to launch once more, in their order
  const std::unique_ptr<Chain> chain_ = std::make_unique<Chain>();
};

}  // namespace ncclrun::net
