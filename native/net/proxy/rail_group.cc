#include "net/proxy/rail_group.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/element.h"
#include "datapath/reduce.h"

namespace ncclrun {
namespace {

constexpr int kOps = ReduceTable::kOps;
static_assert(ncclNumTypes * kOps <= 64);

size_t roundToLine(size_t bytes) { return (bytes + 63) / 64 * 64; }

bool isFloat(ncclDataType_t type) {
  return type == ncclFloat16 || type == ncclFloat32 || type == ncclFloat64 || type == ncclBfloat16 ||
         type == ncclFloat8e4m3 || type == ncclFloat8e5m2;
}

}  // namespace

std::optional<net::Reduction> networkReduction(ncclDataType_t type, ncclRedOp_t op) {
  if (op == ncclSum || op == ncclProd || op == ncclMax || op == ncclMin) return net::Reduction{type, op};
  if (op == kPreMulSum || (op == ncclAvg && isFloat(type))) return net::Reduction{type, ncclSum};
  return {};
}

NetworkReductions bitOf(net::Reduction reduction) {
  return NetworkReductions(1) << (int(reduction.type) * kOps + int(reduction.op));
}

Status RailGroup::make(const Setup& setup, std::unique_ptr<RailGroup>& out) {
  const size_t stride = roundToLine(setup.stepBytes);
  const size_t bytes = 2 * (kConnectionHeaderBytes + setup.steps * stride);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return {ncclSystemError,
            "no memory for the " + std::to_string(bytes) + " bytes of a rail's group: " + strerror(errno)};
  }
  out.reset(new RailGroup(setup, Mapping(memory, bytes), stride));
  return {};
}

RailGroup::RailGroup(const Setup& setup, Mapping memory, size_t stride)
    : setup_(setup),
      stride_(stride),
      memory_(std::move(memory)),
      sends_{.ring = *new (memory_.address()) Connection{},
             .slots = static_cast<std::byte*>(memory_.address()) + 2 * kConnectionHeaderBytes,
             .calls = std::vector<StepCall>(setup.steps)},
      receives_{.ring = *new (static_cast<std::byte*>(memory_.address()) + kConnectionHeaderBytes) Connection{},
                .slots = sends_.slots + setup.steps* stride,
                .calls = std::vector<StepCall>(setup.steps)},
      handles_(setup.members),
      requests_(setup.steps) {}

RailGroup::~RailGroup() { close(); }

void RailGroup::close() {
  if (group_ != nullptr && registration_.has_value()) static_cast<void>(group_->deregisterMemory(*registration_));
  registration_.reset();
  group_.reset();
  listener_.reset();
  network_.reset();
}

NetworkReductions RailGroup::reductions() const {
  return state_.load(std::memory_order_acquire) == State::open ? reductions_.load(std::memory_order_relaxed) : 0;
}

void RailGroup::use(NetworkReductions agreed) {
  if (agreed == 0) isAbandoned_.store(true, std::memory_order_release);
}

bool RailGroup::isIdle() const {
  if (state_.load(std::memory_order_acquire) != State::open) return isDecided();
  return sends_.ring.tail.load(std::memory_order_seq_cst) == receives_.ring.tail.load(std::memory_order_seq_cst);
}

std::string RailGroup::why() const { return failure().sentence; }

Status RailGroup::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

void RailGroup::onOffer(uint32_t member, const net::Handle* handle) {
  std::lock_guard lock(mutex_);
  if (handle == nullptr) {
    isRefused_ = true;
  } else {
    handles_[member] = *handle;
  }
}

bool RailGroup::endWithout(const std::string& why) {
  {
    std::lock_guard lock(mutex_);
    failure_ = {ncclSystemError, why};
  }
  close();
  state_.store(State::none, std::memory_order_release);
  return true;
}

void RailGroup::breakWith(const Status& why) {
  std::lock_guard lock(mutex_);
  failure_ = why;
  state_.store(State::broken, std::memory_order_release);
}

bool RailGroup::advance() {
  switch (state_.load(std::memory_order_relaxed)) {
    case State::fresh:
      return begin();
    case State::gathering:
      return gather();
    case State::connecting:
      return connect();
    case State::open:
      if (!isAbandoned_.load(std::memory_order_acquire)) return reduce();
      return endWithout("not all ranks have one");
    case State::none:
    case State::broken:
      return false;
  }
  return false;
}

bool RailGroup::begin() {
  const auto refuse = [&](const std::string& why) {
    setup_.offer(nullptr);
    return endWithout(why);
  };
  const Status made = setup_.aggregators.has_value() ? makeAggregatorNetwork(*setup_.aggregators, network_)
                                                     : setup_.network.makeCollective(network_);
  if (!made.ok()) return refuse(made.sentence);
  if (network_ == nullptr || network_->devices().empty()) {
    return refuse("network " + setup_.network.name() + " cannot reduce");
  }
  NetworkReductions reductions = 0;
  for (int type = 0; type < ncclNumTypes; type++) {
    for (int op = 0; op < kOps; op++) {
      const net::Reduction reduction{ncclDataType_t(type), ncclRedOp_t(op)};
      if (network_->canReduce(reduction)) reductions |= bitOf(reduction);
    }
  }
  if (reductions == 0) return refuse("the collective network " + network_->name() + " reduces no type");
  reductions_.store(reductions, std::memory_order_relaxed);
  net::Handle handle{};
  const auto device = uint32_t(setup_.device % network_->devices().size());
  if (const Status status = network_->listen(device, handle, listener_); !status.ok()) return refuse(status.sentence);
  networkName_ = network_->name();
  onOffer(setup_.index, &handle);
  setup_.offer(&handle);
  state_.store(State::gathering, std::memory_order_release);
  return true;
}

bool RailGroup::gather() {
  bool isRefused;
  {
    std::lock_guard lock(mutex_);
    isRefused = isRefused_;
    if (!isRefused && !std::ranges::all_of(handles_, [](const auto& one) { return one.has_value(); })) return false;
  }
  if (isRefused) return endWithout("a rank of another host has none");
  state_.store(State::connecting, std::memory_order_release);
  return true;
}

bool RailGroup::connect() {
  std::vector<net::Handle> handles;
  {
    std::lock_guard lock(mutex_);
    for (const auto& handle : handles_) handles.push_back(handle.value_or(net::Handle{}));
  }
  if (const Status status = listener_->connect(handles, setup_.index, group_); !status.ok()) {
    return endWithout(status.sentence);
  }
  if (group_ == nullptr) return false;
  listener_.reset();
  net::Registration registration{};
  const net::Region region{.address = memory_.address(), .bytes = memory_.bytes().size()};
  if (const Status status = group_->registerMemory(region, registration); !status.ok()) {
    return endWithout(status.sentence);
  }
  registration_ = registration;
  state_.store(State::open, std::memory_order_release);
  return true;
}

// Of a step that the block has filled, into the slot of the same number that comes back.
Status RailGroup::post(uint64_t step, net::Request*& request) {
  const uint32_t slot = uint32_t(step % setup_.steps);
  const StepCall& call = sends_.calls[slot];
  const auto reduction = networkReduction(ncclDataType_t(call.type), ncclRedOp_t(call.op));
  if (!reduction.has_value()) {
    return {ncclInternalError, "the network is to reduce " + describe(call) + ", which it cannot; a defect of ncclrun"};
  }
  const size_t count = sends_.ring.stepBytes[slot].load(std::memory_order_relaxed) / elementBytes(reduction->type);
  const net::Registration registration = registration_.value_or(net::Registration{});
  return group_->iallreduce({slotOf(sends_, step), registration}, {slotOf(receives_, step), registration}, count,
                            *reduction, request);
}

bool RailGroup::reduce() {
  bool hasChanged = false;
  for (;;) {
    const bool isFilled = posted_ < sends_.ring.tail.load(std::memory_order_seq_cst);
    const bool isFree = posted_ < receives_.ring.head.load(std::memory_order_seq_cst) + setup_.steps;
    if (!isFilled || !isFree || posted_ - done_ >= std::min<size_t>(setup_.steps, net::kMaxCollectives)) break;
    net::Request*& request = requests_[posted_ % setup_.steps];
    request = nullptr;
    if (const Status status = post(posted_, request); !status.ok()) {
      breakWith(status);
      return true;
    }
    if (request == nullptr) break;
    posted_++;
    hasChanged = true;
  }
  while (done_ < posted_) {
    bool isDone = false;
    if (const Status status = group_->test(requests_[done_ % setup_.steps], isDone); !status.ok()) {
      breakWith(status);
      return true;
    }
    if (!isDone) break;
    const uint32_t slot = uint32_t(done_ % setup_.steps);
    receives_.ring.stepBytes[slot].store(sends_.ring.stepBytes[slot].load(std::memory_order_relaxed),
                                         std::memory_order_relaxed);
    receives_.calls[slot] = sends_.calls[slot];
    done_++;
    sends_.ring.head.store(done_, std::memory_order_seq_cst);
    receives_.ring.tail.store(done_, std::memory_order_seq_cst);
    hasChanged = true;
  }
  return hasChanged;
}

}  // namespace ncclrun
