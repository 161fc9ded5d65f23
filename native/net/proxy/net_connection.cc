#include "net/proxy/net_connection.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "net/device_memory.h"

namespace ncclrun {
namespace {

static_assert(sizeof(NetConnection::SlotHeader) == cuda::kNetMessageHeaderBytes && NetConnection::kEndBytes == 8);

size_t strideOf(uint32_t stepBytes) { return sizeof(NetConnection::SlotHeader) + (size_t(stepBytes) + 63) / 64 * 64; }

}  // namespace

Status NetConnection::make(const Setup& setup, std::unique_ptr<NetConnection>& out) {
  const uint64_t max = setup.network.devices()[setup.device].maxMessageBytes;
  if (max < sizeof(SlotHeader) || (setup.stepBytes + sizeof(SlotHeader)) / max >= kMaxParts) {
    return {ncclInvalidUsage, "the network " + setup.network.name() + " carries at most " + std::to_string(max) +
                                  " bytes in a message, too few for slots of " + std::to_string(setup.stepBytes)};
  }
  const size_t slots = setup.ring.has_value() ? 0 : setup.steps * strideOf(setup.stepBytes);
  const size_t bytes = kConnectionHeaderBytes + slots;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return {ncclSystemError, "no memory for the " + std::to_string(bytes) + " bytes of a connection with " +
                                 setup.peerName + ": " + strerror(errno)};
  }
  out.reset(new NetConnection(setup, Mapping(memory, bytes)));
  return {};
}

NetConnection::NetConnection(const Setup& setup, Mapping memory)
    : network_(setup.network),
      device_(setup.device),
      sends_(setup.sends),
      steps_(setup.steps),
      stepBytes_(setup.stepBytes),
      stride_(setup.ring.has_value() ? setup.ring->stride : strideOf(setup.stepBytes)),
      partBytes_(std::min<uint64_t>(setup.network.devices()[setup.device].maxMessageBytes,
                                    sizeof(SlotHeader) + setup.stepBytes)),
      parts_((sizeof(SlotHeader) + setup.stepBytes + partBytes_ - 1) / partBytes_),
      peerName_(setup.peerName),
      busy_(setup.busy),
      deviceRing_(setup.ring),
      memory_(std::move(memory)),
      ring_(*static_cast<Connection*>(memory_.address())),
      slots_(setup.ring.has_value() ? setup.ring->slots
                                    : static_cast<std::byte*>(memory_.address()) + kConnectionHeaderBytes),
      calls_(std::make_unique<StepCall[]>(setup.steps)),
      lends_(setup.network.carriesPieces() && !setup.ring.has_value() && parts_ == 1),
      lent_(std::make_unique<std::byte*[]>(setup.steps)),
      requests_(setup.steps * parts_),
      arrivals_(setup.sends ? 0 : setup.steps * parts_),
      record_(setup.recorder, {.peer = setup.peer,
                               .channel = setup.channel,
                               .sends = setup.sends,
                               .nic = setup.network.devices()[setup.device].name}) {
  // A sender has no free slots before the connection is open: a slot posted to one that never is would be lost.
  if (sends_) ring_.head.store(uint64_t(0) - steps_, std::memory_order_relaxed);
  if (deviceRing_.has_value()) deviceRing_->store(ring_, sends_);
}

NetConnection::~NetConnection() { close(); }

void NetConnection::close() {
  std::lock_guard lock(mutex_);
  fail({ncclInvalidUsage, "this rank has left the communicator"});
  count(false);
  deregister(sender_.get());
  deregister(receiver_.get());
  sender_.reset();
  receiver_.reset();
  connector_.reset();
  listener_.reset();
}

Status NetConnection::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

bool NetConnection::fail(const Status& why) {
  if (failed_.load(std::memory_order_relaxed)) return false;
  failure_ = why;
  failed_.store(true, std::memory_order_release);
  return true;
}

Status NetConnection::listen(net::Handle& handle) {
  std::lock_guard lock(mutex_);
  return network_.listen(device_, handle, listener_);
}

void NetConnection::connectTo(const net::Handle& handle) {
  {
    std::lock_guard lock(mutex_);
    if (connector_ != nullptr || sender_ != nullptr || failed_.load(std::memory_order_relaxed)) return;
    if (const Status status = network_.connect(device_, handle, connector_); !status.ok()) fail(status);
  }
  watched.store(true, std::memory_order_seq_cst);
}

bool NetConnection::advance(Extent extent) {
  bool changed = false;
  requested_.store(true, std::memory_order_seq_cst);
  while (requested_.load(std::memory_order_seq_cst) && mutex_.try_lock()) {
    requested_.store(false, std::memory_order_seq_cst);
    extent_ = extent;
    changed = move() || changed;
    extent_ = Extent::all;
    count(!isIdle() && !hasFailed());
    mutex_.unlock();
  }
  return changed;
}

bool NetConnection::pair(NetConnection& sends, NetConnection& receives) {
  {
    std::scoped_lock lock(sends.mutex_, receives.mutex_);
    if (sends.sender_ != nullptr && receives.receiver_ != nullptr)
      sends.network_.pair(*sends.sender_, *receives.receiver_);
  }
  // Whoever has found a mutex taken relies on its holder to move the connection.
  const bool hasSent = sends.advance();
  return receives.advance() || hasSent;
}

bool NetConnection::settle() {
  std::lock_guard lock(mutex_);
  move();
  count(!isIdle() && !hasFailed());
  return isIdle();
}

void NetConnection::count(bool isBusy) {
  if (isBusy == std::exchange(isCounted_, isBusy)) return;
  busy_.fetch_add(isBusy ? 1 : -1, std::memory_order_relaxed);
}

bool NetConnection::move() {
  if (!deviceRing_.has_value()) return moveRing();
  deviceRing_->fetch(ring_, sends_, steps_);
  const bool changed = moveRing();
  deviceRing_->store(ring_, sends_);
  return changed;
}

bool NetConnection::moveRing() {
  if (failed_.load(std::memory_order_relaxed)) return false;
  if (sends_) return sender_ == nullptr ? connect() : endRequest_ == nullptr && sendSlots();
  return receiver_ != nullptr ? receiveSlots() : accept();
}

bool NetConnection::registerSlots(net::Connection& connection) {
  const size_t bytes = deviceRing_.has_value() ? deviceRing_->bytes : steps_ * stride_;
  const Status status = hasGpuSlots() ? registerGpuSlots(connection)
                                      : connection.registerMemory({.address = slots_, .bytes = bytes}, registration_);
  if (!status.ok()) fail(status);
  isRegistered_ = isRegistered_ || status.ok();
  return status.ok();
}

Status NetConnection::registerGpuSlots(net::Connection& connection) {
  const net::Device& device = network_.devices()[device_];
  const net::Region region{.address = slots_,
                           .bytes = deviceRing_->bytes,
                           .type = net::MemoryType::device,
                           .dmaBufDescriptor = deviceRing_->gpu->dmaBuf,
                           .dmaBufOffset = deviceRing_->gpu->offset};
  net::DeviceRegistration how;
  Status status = net::registerDeviceMemory(connection, device, region, registration_, how);
  if (!status.ok()) {
    status.sentence = "NIC " + device.name + " has registered GPU memory before, and does not any more (" +
                      status.sentence + "): NCCL_NET_GDR_LEVEL=LOC does without";
    return status;
  }
  if (!sends_) return {};
  isRegistered_ = true;
  NCCLRUN_TRY(connection.registerMemory({.address = &end_, .bytes = sizeof end_}, endRegistration_));
  isEndRegistered_ = true;
  return {};
}

void NetConnection::deregister(net::Connection* connection) {
  if (connection == nullptr) return;
  if (std::exchange(isRegistered_, false)) connection->deregisterMemory(registration_);
  if (std::exchange(isEndRegistered_, false)) connection->deregisterMemory(endRegistration_);
}

bool NetConnection::connect() {
  if (connector_ == nullptr) return false;
  const Status status = connector_->connect(sender_);
  if (!status.ok()) {
    connector_.reset();
    return fail(status);
  }
  if (sender_ == nullptr) return false;
  connector_.reset();
  if (!registerSlots(*sender_)) return true;
  ring_.head.store(0, std::memory_order_seq_cst);
  open_.store(true, std::memory_order_release);
  // Kernels may have posted steps meanwhile, of which nobody hears a second time.
  sendSlots();
  return true;
}

bool NetConnection::accept() {
  if (listener_ == nullptr) return false;
  if (const Status status = listener_->accept(receiver_); !status.ok()) return fail(status);
  if (receiver_ == nullptr) return false;
  listener_.reset();
  if (!registerSlots(*receiver_)) return true;
  open_.store(true, std::memory_order_release);
  receiveSlots();
  return true;
}

NetConnection::Part NetConnection::partOf(uint64_t message, size_t bytes) const {
  const size_t offset = message % parts_ * partBytes_;
  return {reinterpret_cast<std::byte*>(&headerOf(message / parts_)) + offset,
          offset < bytes ? std::min(bytes - offset, partBytes_) : 0};
}

bool NetConnection::sendSlots() {
  const uint64_t tail = ring_.tail.load(std::memory_order_seq_cst) * parts_;
  bool changed = false;
  for (;;) {
    while (posted_ != tail) {
      const uint64_t step = posted_ / parts_;
      const uint32_t bytes = ring_.stepBytes[step % steps_].load(std::memory_order_relaxed);
      if (posted_ % parts_ == 0 && !hasGpuSlots())
        headerOf(step) = {.step = uint32_t(step),
                          .bytes = bytes,
                          .call = calls_[step % steps_],
                          .isLL = deviceRing_.has_value() && deviceRing_->isLL(step, steps_)};
      const Part part = partOf(posted_, sizeof(SlotHeader) + bytes);
      const std::byte* const lent = lent_[step % steps_];
      net::Request* request = nullptr;
      const Status status =
          lent == nullptr
              ? sender_->isend(part.address, part.bytes, kTag, registration_, request)
              : sender_->isendPieces(
                    {.head = part.address, .headBytes = sizeof(SlotHeader), .body = lent, .bodyBytes = bytes}, kTag,
                    request);
      if (!status.ok()) return fail(status);
      if (request == nullptr) break;
      requestOf(posted_++) = request;
    }
    const uint64_t before = done_;
    while (done_ != posted_) {
      bool done = false;
      const Status status = sender_->test(requestOf(done_), done, {});
      if (!status.ok()) return fail(status);
      if (!done) break;
      if (++done_ % parts_ == 0)
        carried_ += ring_.stepBytes[(done_ / parts_ - 1) % steps_].load(std::memory_order_relaxed);
    }
    record_.update(posted_, done_, carried_, sender_.get());
    if (done_ == before) return changed;
    if (done_ / parts_ != before / parts_) {
      ring_.head.store(done_ / parts_, std::memory_order_seq_cst);
      changed = true;
    }
    if (posted_ == tail) return changed;
  }
}

bool NetConnection::receiveSlots() {
  bool changed = false;
  if (ended_.load(std::memory_order_relaxed)) {
    drainReceives();
    return false;
  }
  for (;;) {
    // What has come before a connection ended can still be received, though nothing more can be posted.
    const Status posted = postReceives(sizeof(SlotHeader) + stepBytes_);
    const Status taken = takeArrivals();
    const uint64_t before = visible_;
    changed = publishArrivals(taken.ok()) || changed;
    record_.update(posted_, done_, carried_, nullptr);
    if (failed_.load(std::memory_order_relaxed) || ended_.load(std::memory_order_relaxed)) return changed;
    if (!taken.ok()) return fail(taken) || changed;
    // A further look would cost the block, which has what it waits for, a system call.
    if (visible_ != before && endsEarly(arrivalOf(visible_ - 1).bytes)) return true;
    if (visible_ != before) continue;
    return (!posted.ok() && visible_ == posted_ && fail(posted)) || changed;
  }
}

uint64_t NetConnection::stepsToPost() const {
  const uint64_t head = ring_.head.load(std::memory_order_seq_cst);
  if (lends_ && wanted_.has_value()) return wanted_->step + 1;
  if (lends_ && ring_.tail.load(std::memory_order_relaxed) != head) return 0;
  return head + steps_;
}

Status NetConnection::postReceives(size_t stepBytes) {
  const uint64_t free = stepsToPost() * parts_;
  while (posted_ < free && !isEndSeen_) {
    const Part part = partOf(posted_, stepBytes);
    const bool isWanted = wanted_.has_value() && wanted_->step == posted_;
    const net::Buffer buffer{.address = part.address,
                             .bytes = part.bytes,
                             .tag = kTag,
                             .registration = registration_,
                             .scatter = isWanted ? wanted_->scatter : net::Scatter{}};
    net::Request* request = nullptr;
    NCCLRUN_TRY(receiver_->irecv({&buffer, 1}, request));
    if (request == nullptr) break;
    requestOf(posted_++) = request;
  }
  return {};
}

// After its last message the other side closes the connection, with whatever is posted here.
Status NetConnection::takeArrivals() {
  while (done_ != posted_ && !isEndSeen_) {
    bool done = false;
    size_t bytes = partOf(done_, sizeof(SlotHeader) + stepBytes_).bytes;
    NCCLRUN_TRY(receiver_->test(requestOf(done_), done, {&bytes, 1}));
    if (!done) break;
    NCCLRUN_TRY(arrived(done_++, bytes));
    if (endsEarly(bytes)) break;
  }
  return {};
}

bool NetConnection::publishArrivals(bool mayTest) {
  bool changed = false;
  while (visible_ != done_) {
    Arrival& arrival = arrivalOf(visible_);
    if (arrival.flush != nullptr) {
      if (!mayTest) return changed;
      bool isVisible = false;
      if (const Status status = receiver_->test(arrival.flush, isVisible, {}); !status.ok())
        return fail(status) || changed;
      if (!isVisible) return changed;
      arrival.flush = nullptr;
    }
    const uint64_t message = visible_++;
    changed = received(message / parts_, message % parts_, arrival.bytes) || changed;
    if (failed_.load(std::memory_order_relaxed)) return true;
  }
  return changed;
}

// Some plugins do not say how long a message was: the header does. In GPU memory, where nobody reads it here, GPUDirect
// is used with no such plugin.
Status NetConnection::arrived(uint64_t message, size_t bytes) {
  Arrival& arrival = arrivalOf(message);
  arrival = {.bytes = bytes, .flush = nullptr};
  const bool isFirst = message % parts_ == 0;
  isEndSeen_ =
      isFirst && (hasGpuSlots() ? bytes == kEndBytes : bytes >= kEndBytes && headerOf(message / parts_).bytes == kEnd);
  if (!hasGpuSlots() || !deviceRing_->gpu->flushes || bytes == 0 || isEndSeen_) return {};
  const net::Buffer buffer{.address = partOf(message, sizeof(SlotHeader) + stepBytes_).address,
                           .bytes = bytes,
                           .tag = kTag,
                           .registration = registration_};
  return receiver_->iflush({&buffer, 1}, arrival.flush);
}

bool NetConnection::isStep(uint64_t step, size_t bytes) {
  const SlotHeader& header = headerOf(step);
  if (bytes >= sizeof header && (hasGpuSlots() || (header.bytes <= stepBytes_ && header.step == uint32_t(step))))
    return true;
  fail({ncclInternalError, peerName_ + " sent a message of " + std::to_string(bytes) + " bytes that is not step " +
                               std::to_string(uint32_t(step)) + " of this connection"});
  return false;
}

bool NetConnection::received(uint64_t step, uint64_t part, size_t bytes) {
  if (isEndSeen_ && visible_ == done_) {
    ended_.store(true, std::memory_order_release);
    return true;
  }
  if (part == 0 && !isStep(step, bytes)) return true;
  if (hasGpuSlots()) {
    carried_ += bytes - (part == 0 ? sizeof(SlotHeader) : 0);
    if (part + 1 != parts_) return false;
    ring_.tail.store(step + 1, std::memory_order_seq_cst);
    return true;
  }
  const SlotHeader& header = headerOf(step);
  if (bytes < partOf(step * parts_ + part, sizeof header + header.bytes).bytes) {
    return fail({ncclInternalError, peerName_ + " sent " + std::to_string(bytes) + " bytes of step " +
                                        std::to_string(uint32_t(step)) + " where more were due"});
  }
  if (part + 1 != parts_) return false;
  if (deviceRing_.has_value() && !expand(step, header)) return true;
  if (lends_) takeWanted(step, header.bytes);
  calls_[step % steps_] = header.call;
  carried_ += header.bytes;
  ring_.stepBytes[step % steps_].store(header.bytes, std::memory_order_relaxed);
  ring_.tail.store(step + 1, std::memory_order_seq_cst);
  return true;
}

void NetConnection::receiveInto(uint64_t step, std::byte* target, uint32_t bytes) {
  std::lock_guard lock(mutex_);
  if (visible_ > step || failed_.load(std::memory_order_relaxed)) return;  // it lies in its slot, or does not come
  const net::Scatter scatter{.body = target, .headBytes = sizeof(SlotHeader), .bodyBytes = bytes};
  if (posted_ <= step || receiver_->redirect(requestOf(step), scatter)) wanted_ = {step, scatter};
}

void NetConnection::takeWanted(uint64_t step, uint32_t bytes) {
  const bool isWanted = wanted_.has_value() && wanted_->step == step;
  lent_[step % steps_] = isWanted && wanted_->scatter.bodyBytes == bytes ? wanted_->scatter.body : nullptr;
  if (isWanted) wanted_.reset();
}

void NetConnection::forgetLent() {
  if (!lends_) return;
  std::lock_guard lock(mutex_);
  bool isNeeded = wanted_.has_value();
  if (sends_) {
    for (uint64_t step = done_; step != ring_.tail.load(std::memory_order_seq_cst); step++)
      isNeeded = isNeeded || lent_[step % steps_] != nullptr;
  }
  wanted_.reset();
  if (!isNeeded || !fail({ncclInvalidUsage, "a call that used this connection has ended early"})) return;
  deregister(sender_.get());
  deregister(receiver_.get());
  sender_.reset();
  receiver_.reset();
}

bool NetConnection::expand(uint64_t step, const SlotHeader& header) {
  if (header.isLL == 0) {
    deviceRing_->renew(step, steps_);
  } else if (header.bytes <= deviceRing_->maxLLBytes()) {
    deviceRing_->expand(step, steps_, header.bytes);
  } else {
    fail({ncclInternalError, peerName_ + " sent step " + std::to_string(uint32_t(step)) + " of " +
                                 std::to_string(header.bytes) + " bytes under protocol LL, which has slots of " +
                                 std::to_string(deviceRing_->maxLLBytes()) + " here"});
    return false;
  }
  return true;
}

}  // namespace ncclrun
