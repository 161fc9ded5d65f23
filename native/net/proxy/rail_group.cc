#include "net/proxy/rail_group.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/debug.h"
#include "base/element.h"
#include "datapath/reduce.h"
#include "net/device_memory.h"

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

NetworkReductions bitOf(net::Reduction reduction) { return NetworkReductions(1) << (numberOf(reduction) - 1); }

uint8_t numberOf(net::Reduction reduction) { return uint8_t(int(reduction.type) * kOps + int(reduction.op) + 1); }

Status RailGroup::make(const Setup& setup, std::unique_ptr<RailGroup>& out) {
  const size_t stride = setup.forKernels ? 0 : roundToLine(setup.stepBytes);
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
      memory_(std::move(memory)),
      sends_{.ring = *new (memory_.address()) Connection{},
             .slots = static_cast<std::byte*>(memory_.address()) + 2 * kConnectionHeaderBytes,
             .stride = stride,
             .calls = std::vector<StepCall>(setup.steps)},
      receives_{.ring = *new (static_cast<std::byte*>(memory_.address()) + kConnectionHeaderBytes) Connection{},
                .slots = sends_.slots + setup.steps* stride,
                .stride = stride,
                .calls = std::vector<StepCall>(setup.steps)},
      isPlaced_(!setup.forKernels),
      handles_(setup.members),
      requests_(setup.steps),
      flushes_(setup.steps) {}

RailGroup::~RailGroup() { close(); }

void RailGroup::close() {
  for (Side* side : {&sends_, &receives_}) {
    if (group_ != nullptr && side->registration.has_value())
      static_cast<void>(group_->deregisterMemory(*side->registration));
    side->registration.reset();
  }
  group_.reset();
  listener_.reset();
  network_.reset();
}

void RailGroup::useRing(Side& side, const DeviceRing& ring) {
  side.device = ring;
  side.slots = ring.slots + cuda::kNetMessageHeaderBytes;
  side.stride = ring.stride;
}

void RailGroup::place(DeviceRings& rings) {
  rings_ = &rings;
  useRing(sends_, rings.ringOfGroup(setup_.channel, true, false));
  useRing(receives_, rings.ringOfGroup(setup_.channel, false, false));
  isPlaced_.store(true, std::memory_order_release);
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

bool RailGroup::hasDeviceNews() const {
  if (state_.load(std::memory_order_relaxed) != State::open || !sends_.device.has_value()) return false;
  return sends_.device->hasNews(sends_.ring, true) || receives_.device->hasNews(receives_.ring, false);
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
      return isPlaced_.load(std::memory_order_acquire) && begin();
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

// --- Connecting

const net::Device& RailGroup::networkDevice() const {
  const auto devices = network_->devices();
  return devices[setup_.device % devices.size()];
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
  const uint64_t max = std::min<uint64_t>(networkDevice().maxCollectiveBytes, cuda::kReducedStepBytes - 1);
  if (setup_.stepBytes > max) {
    return refuse("the collective network " + network_->name() + " can reduce at most " + std::to_string(max) +
                  " bytes at once, and slots have " + std::to_string(setup_.stepBytes));
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
  for (Side* side : {&sends_, &receives_}) {
    if (const Status status = registerSlots(*side, side == &sends_); !status.ok()) return endWithout(status.sentence);
  }
  state_.store(State::open, std::memory_order_release);
  return true;
}

// Slots of kernels lie in GPU memory where the network of the connections reaches it, and the one that reduces does.
Status RailGroup::registerSlots(Side& side, bool sends) {
  if (side.device.has_value() && side.device->gpu.has_value()) {
    const Status status = registerGpuSlots(side);
    if (status.ok()) return {};
    logInfo(setup_.owner + ": the collective network " + networkName_ + " does without GPUDirect: " + status.sentence,
            Subsystem::net);
    useRing(side, rings_->ringOfGroup(setup_.channel, sends, true));
  }
  net::Registration registration{};
  const size_t unused = side.device.has_value() ? cuda::kNetHeaderBytes : 0;  // a header behind the last slot
  const net::Region region{.address = side.slots, .bytes = setup_.steps * side.stride - unused};
  NCCLRUN_TRY(group_->registerMemory(region, registration));
  side.registration = registration;
  return {};
}

Status RailGroup::registerGpuSlots(Side& side) {
  const net::Device& device = networkDevice();
  if (!device.deviceMemory) return {ncclInvalidUsage, "it does not register GPU memory"};
  const DeviceRing::GpuMemory& gpu = *side.device->gpu;
  const net::Region region{.address = side.device->slots,
                           .bytes = side.device->bytes,
                           .type = net::MemoryType::device,
                           .dmaBufDescriptor = gpu.dmaBuf,
                           .dmaBufOffset = gpu.offset};
  net::Registration registration{};
  net::DeviceRegistration how;
  NCCLRUN_TRY(net::registerDeviceMemory(*group_, device, region, registration, how));
  side.registration = registration;
  return {};
}

}  // namespace ncclrun
