// The receiving side of a connection over verbs.
#pragma once
#include <array>
#include <memory>

#include "net/net.h"
#include "net/verbs/verbs_link.h"

namespace ncclrun::net {

class VerbsReceiver final : public Receiver {
 public:
  explicit VerbsReceiver(std::unique_ptr<VerbsLink> link) : link_(std::move(link)) {}

  Status registerMemory(const Region& region, Registration& out) override { return link_->registerMemory(region, out); }
  Status deregisterMemory(Registration registration) override { return link_->deregisterMemory(registration); }
  Status irecv(std::span<const Buffer> group, Request*& out) override;
  Status iflush(std::span<const Buffer> group, Request*& out) override;
  Status test(Request* request, bool& done, std::span<size_t> sizes) override;

 private:
  struct Group {
    uint32_t count = 0;     // messages; 0: free
    uint32_t waitsFor = 0;  // announcements, one of each queue pair that carries a part
    std::array<uint32_t, kMaxGroup> bytes = {};
    std::array<const VerbsLink::Registered*, kMaxGroup> memory = {};
  };

  struct Flush {
    enum class Stage { free, waits, underWay, done } stage = Stage::free;
    uint64_t address = 0;
    const VerbsLink::Registered* memory = nullptr;
  };

  AdvertisementSlot& ownSlot(uint64_t number) const;
  // Moves what can be moved.
  Status progress();
  Status poll();
  Status postReceives(uint64_t number);
  // While the link moves: whether it has resumed.
  Status move(bool& resumed);
  Progress progressSoFar() const;
  // Tells the sender of the groups that it does not know yet.
  Status advertise();
  void arrived(const verbs::Completion& completion);
  // Reads for the flushes that wait, and once more for those of a path that has failed. It takes no word of the other
  // side, which may be idle.
  Status readBack();

  const std::unique_ptr<VerbsLink> link_;
  std::array<Group, kGroupSlots> groups_;
  std::array<Flush, kGroupSlots> flushes_;
  uint32_t flushesOpen_ = 0;
  uint32_t flushPath_ = 0;   // number of the path that has been asked
  uint64_t posted_ = 0;      // groups that irecv has taken
  uint64_t advertised_ = 0;  // of these, those that the sender is told of
  uint64_t awaited_ = 0;     // groups that the sender is told of and that have not arrived
  bool areSmall_ = false;    // the messages, by the last group that arrived
  uint32_t underWay_ = 0;    // advertisements that have not arrived
};

}  // namespace ncclrun::net
