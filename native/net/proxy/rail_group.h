// One rank's membership in the group of its rail, which the network reduces (NCCL's CollNet): the ranks of one local
// index, one of every host. A block puts what its host has reduced into one ring and finds the sum of all hosts in
// another; between the two, the proxy has the network reduce.
//
// Every member makes its group or says that it has none; what one fails at, it fails at alone. So a group is used only
// after all ranks have agreed on what all of them can reduce (reductions(), use()).
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/aggregator_network.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "datapath/step_call.h"
#include "net/collective_network.h"
#include "plan/segment_format.h"

namespace ncclrun {

// What a network can reduce, as a set of pairs of type and operator: bit networkReduction() of each.
using NetworkReductions = uint64_t;

// The sum, product, maximum or minimum that the network reduces for a call with this operator, whose contributions are
// scaled before; none where the result has to be divided, too.
std::optional<net::Reduction> networkReduction(ncclDataType_t type, ncclRedOp_t op);
NetworkReductions bitOf(net::Reduction reduction);

class RailGroup {
 public:
  struct Setup {
    net::Network& network;
    std::optional<aggregator::NetworkConfig> aggregators;  // that reduce instead
    uint32_t device;                                       // of the group's network, modulo their number
    uint32_t index;                                        // of this rank among the members
    uint32_t members;
    uint32_t steps;
    uint32_t stepBytes;
    // Tells the other members where this one listens; null: that it has no group.
    std::function<void(const net::Handle*)> offer;
  };
  static Status make(const Setup& setup, std::unique_ptr<RailGroup>& out);
  ~RailGroup();
  RailGroup(const RailGroup&) = delete;
  RailGroup& operator=(const RailGroup&) = delete;

  // --- Any thread
  // It is known whether this member has a group.
  bool isDecided() const { return state_.load(std::memory_order_acquire) >= State::open; }
  // Once that is known: none where it has none.
  NetworkReductions reductions() const;
  bool hasNone() const { return state_.load(std::memory_order_acquire) == State::none; }
  std::string why() const;  // it has none
  const std::string& networkName() const { return networkName_; }
  // What all ranks agreed on. None: the proxy closes the group.
  void use(NetworkReductions agreed);
  // Nothing is to be reduced or on its way.
  bool isIdle() const;
  bool hasFailed() const { return state_.load(std::memory_order_acquire) == State::broken; }
  Status failure() const;
  void onOffer(uint32_t member, const net::Handle* handle);

  // --- The proxy's thread
  // True if something has changed.
  bool advance();
  void close();

  struct Side {
    Connection& ring;
    std::byte* slots;
    std::vector<StepCall> calls;
  };
  Side& sends() { return sends_; }
  Side& receives() { return receives_; }
  size_t stride() const { return stride_; }
  std::atomic<bool> watched{false};  // the proxy is to move it

 private:
  enum class State : uint32_t { fresh, gathering, connecting, open, none, broken };
  RailGroup(const Setup& setup, Mapping memory, size_t stride);

  bool begin();
  bool gather();
  bool connect();
  bool reduce();
  Status post(uint64_t step, net::Request*& request);
  bool endWithout(const std::string& why);
  void breakWith(const Status& why);
  std::byte* slotOf(Side& side, uint64_t step) const { return side.slots + (step % setup_.steps) * stride_; }

  const Setup setup_;
  const size_t stride_;
  const Mapping memory_;
  Side sends_, receives_;

  std::atomic<State> state_{State::fresh};
  std::atomic<bool> isAbandoned_{false};
  std::atomic<NetworkReductions> reductions_{0};
  mutable std::mutex mutex_;  // of what follows
  std::vector<std::optional<net::Handle>> handles_;
  bool isRefused_ = false;  // some member has no group
  Status failure_;
  // The proxy's thread alone, but the name.
  std::string networkName_;
  std::unique_ptr<net::CollectiveNetwork> network_;
  std::unique_ptr<net::CollectiveListener> listener_;
  std::unique_ptr<net::CollectiveGroup> group_;
  std::optional<net::Registration> registration_;
  std::vector<net::Request*> requests_;
  uint64_t posted_ = 0, done_ = 0;
};

}  // namespace ncclrun
