// The primitives of algorithm/work.h over the regions of a launch, in the memory of the stand-in's GPUs.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithm/work.h"
#include "base/fiber.h"
#include "datapath/reduce.h"
#include "plan/launch_format.h"
#include "residency.h"

namespace stand_in {

using ncclrun::cuda::Item;
using ncclrun::cuda::Launch;

// One block of a launch, on a stack of its own: the others run while it waits.
class Block {
 public:
  explicit Block(std::function<void(Block&)> body) : body_(std::move(body)) {}
  void start();
  bool resume();  // false: it has ended
  // False: the communicator is aborted.
  bool await(const Launch& launch, const std::function<bool()>& ready);

 private:
  std::function<void(Block&)> body_;
  ncclrun::Fiber fiber_;
  bool aborted_ = false;
};

// Runs each block when an SM has room for it.
void runAll(std::vector<std::unique_ptr<Block>>& blocks, Residency& residency);

// The reduction that a launch's opIndex selects in a module.
ncclrun::Reduction reductionOf(const std::string& module, const Launch& launch);

class Primitives {
 public:
  static constexpr bool kSingleStep = false;

  Primitives(Block& block, const Launch& launch, const Item& item, uint32_t channel, uint32_t protocol,
             const ncclrun::Reduction& reduction);

  size_t slotElements() const { return payload_ / launch_.elementBytes; }
  size_t slots() const { return steps_; }

  void copy(const void* source, void* target, size_t count) {
    if (source != target && count > 0) move({0, 0, 0, 0, source, 0, target, count});
  }
  void copyAll(const char* source, char* target, size_t count, uint32_t block, uint32_t blocks);
  void send(uint32_t to, const void* source, size_t n) { move({0, 0, to, 1, source, 0, nullptr, n}); }
  void sendAll(const void* source, size_t n, uint32_t) {
    move({0, 0, 0, uint32_t(sends_.size()), source, 0, nullptr, n});
  }
  void sendAndCopy(uint32_t to, const void* source, const void* own, void* target, size_t n) {
    send(to, source, n);
    if (target != nullptr) copy(own, target, n);
  }
  void copySend(const void* source, void* target, uint32_t to, size_t n) {
    move({0, 0, to, 1, source, 0, target == source ? nullptr : target, n});
  }
  void receive(uint32_t from, void* target, size_t n) { move({from, 1, 0, 0, nullptr, 0, target, n}); }
  void receiveSend(uint32_t from, uint32_t to, void* target, size_t n) {
    move({from, 1, to, 1, nullptr, 0, target, n});
  }
  void receiveReduceSend(uint32_t from, const void* own, uint32_t to, size_t n) {
    move({from, 1, to, 1, own, 1, nullptr, n});
  }
  void receiveReduceCopy(uint32_t from, const void* own, void* target, size_t n) {
    move({from, 1, 0, 0, own, 1, target, n});
  }
  void receiveReduceCopySend(uint32_t from, const void* own, void* target, uint32_t to, size_t n) {
    move({from, 1, to, 1, own, 1, target, n});
  }
  void reduceAll(const void* own, uint32_t ownIndex, void* target, bool forward, size_t n) {
    move({0, uint32_t(receives_.size()), 0, forward ? uint32_t(sends_.size()) : 0, own, ownIndex, target, n});
  }
  void merge(uint32_t from, uint32_t receiveCount, const void* own, void* target, uint32_t to, uint32_t sendCount,
             size_t n) {
    move({from, receiveCount, to, sendCount, own, receiveCount, target, n});
  }
  void pull(const ncclrun::Work& w);
  void finishSends() {}
  void signalAll();
  void awaitAll();
  // Keeps where the connections are.
  void finish();

 private:
  struct Move {
    uint32_t from, receiveCount, to, sendCount;
    const void* own;
    uint32_t ownIndex;
    void* target;
    size_t count;
  };
  // A slot begins with the number of its step, from 1; under protocol Simple the number lies beside the slots. Over a
  // network slots of protocol LL are lines, as kernels and proxies have them.
  struct ConnectionState {
    char* slots;
    uint32_t* tail;
    uint32_t* head;
    uint64_t* posts;     // of a sender over a network
    uint32_t sequence;   // the protocol whose counters it uses
    bool hasLines;       // protocol LL over a network
    bool writesHeaders;  // the same, whose slots lie in GPU memory
    uint32_t reduction;  // of a sender to a network that reduces, as netPost() has it
    uint32_t state;      // its number
    uint32_t step;
    uint64_t bytes;
  };
  struct Connection {
    ncclrun::cuda::RegionPair regions;
    uint32_t slots;  // where they begin there
    uint32_t state;
  };
  ConnectionState connectionOf(const Connection& connection, bool receives) const;
  char* slotOf(const ConnectionState& connection) const {
    return connection.slots + uint64_t(connection.step % steps_) * stride_;
  }
  void* flagOf(const ConnectionState& connection) const {
    return protocol_ == 0 ? static_cast<void*>(connection.tail) : slotOf(connection);
  }
  bool awaitSlots(const Move& move);
  bool hasArrived(const ConnectionState& connection, size_t count) const;
  void move(const Move& move);
  // Into all targets; scaled before.
  void reduce(std::span<const void* const> sources, std::span<void* const> targets, size_t count, bool divides) const;
  void post(const Move& move);

  Block& block_;
  const Launch& launch_;
  const uint32_t protocol_;
  const ncclrun::Reduction& reduction_;
  uint64_t steps_, slotBytes_, stride_, payload_;
  std::vector<ConnectionState> receives_, sends_;
  bool aborted_ = false;
};

}  // namespace stand_in
