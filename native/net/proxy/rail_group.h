// One rank's membership in a group that the network reduces (NCCL's CollNet): on a channel, one rank of every host. A
// block puts what its host has reduced into one ring and finds the sum of all hosts in another; between the two, the
// proxy has the network reduce.
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
#include "net/proxy/device_ring.h"
#include "plan/segment_format.h"

namespace ncclrun {

// What a network can reduce, as a set of pairs of type and operator: bit networkReduction() of each.
using NetworkReductions = uint64_t;

// The sum, product, maximum or minimum that the network reduces for a call with this operator, whose contributions are
// scaled before; none where the result has to be divided, too.
std::optional<net::Reduction> networkReduction(ncclDataType_t type, ncclRedOp_t op);
NetworkReductions bitOf(net::Reduction reduction);
// The same as a number, by which kernels say it (Launch::reduction); not 0.
uint8_t numberOf(net::Reduction reduction);

class RailGroup {
 public:
  struct Setup {
    net::Network& network;
    std::optional<aggregator::NetworkConfig> aggregators = {};  // that reduce instead
    std::string owner;                                          // "rank 3 on host h2"
    uint32_t device;                                            // of the group's network, modulo their number
    uint32_t channel = 0;                                       // of the kernels' rings
    uint32_t index;                                             // of this rank among the members
    uint32_t members;
    uint32_t steps;
    uint32_t stepBytes;
    bool forKernels = false;  // whose rings are known at place()
    // Tells the other members where this one listens; null: that it has no group.
    std::function<void(const net::Handle*)> offer;
  };
  static Status make(const Setup& setup, std::unique_ptr<RailGroup>& out);
  ~RailGroup();
  RailGroup(const RailGroup&) = delete;
  RailGroup& operator=(const RailGroup&) = delete;

  // --- Any thread
  // Kernels use these rings, which outlive the group. Before, the group does nothing.
  void place(DeviceRings& rings);
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
  // Kernels have filled or freed slots since, which nobody else says.
  bool hasDeviceNews() const;
  void close();

  // What goes to the network, or comes from it.
  struct Side {
    Connection& ring;
    std::byte* slots = nullptr;  // payload of the first one
    size_t stride = 0;
    std::vector<StepCall> calls = {};       // by slot, of blocks
    std::optional<DeviceRing> device = {};  // of kernels
    std::optional<net::Registration> registration = {};
  };
  Side& sends() { return sends_; }
  Side& receives() { return receives_; }
  size_t stride() const { return sends_.stride; }
  std::atomic<bool> watched{false};  // the proxy is to move it

 private:
  enum class State : uint32_t { fresh, gathering, connecting, open, none, broken };
  RailGroup(const Setup& setup, Mapping memory, size_t stride);

  bool begin();
  bool gather();
  bool connect();
  Status registerSlots(Side& side, bool sends);
  Status registerGpuSlots(Side& side);
  void useRing(Side& side, const DeviceRing& ring);
  bool reduce();
  Status postFilled();
  Status post(uint64_t step, net::Request*& request);
  Status takeReduced();
  Status flush(uint64_t step);
  Status publishVisible();
  bool endWithout(const std::string& why);
  void breakWith(const Status& why);
  net::RegisteredBuffer bufferOf(const Side& side, uint64_t step) const;
  std::optional<net::Reduction> reductionOf(uint32_t slot) const;
  size_t bytesOf(uint32_t slot) const;
  const net::Device& networkDevice() const;
  uint32_t slotOf(uint64_t step) const { return uint32_t(step % setup_.steps); }

  const Setup setup_;
  const Mapping memory_;
  Side sends_, receives_;

  std::atomic<State> state_{State::fresh};
  std::atomic<bool> isPlaced_;
  std::atomic<bool> isAbandoned_{false};
  std::atomic<NetworkReductions> reductions_{0};
  mutable std::mutex mutex_;  // of what follows
  std::vector<std::optional<net::Handle>> handles_;
  bool isRefused_ = false;  // some member has no group
  Status failure_;
  // The proxy's thread alone, but the name.
  DeviceRings* rings_ = nullptr;
  std::string networkName_;
  std::unique_ptr<net::CollectiveNetwork> network_;
  std::unique_ptr<net::CollectiveListener> listener_;
  std::unique_ptr<net::CollectiveGroup> group_;
  std::vector<net::Request*> requests_, flushes_;  // by slot
  uint64_t posted_ = 0;                            // steps that the network reduces, or has reduced
  uint64_t done_ = 0;                              // of these, those that it has reduced
  uint64_t visible_ = 0;                           // of these, those that the block may see
};

}  // namespace ncclrun
