#include "net/socket/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"

namespace ncclrun {
namespace {

size_t ringBytes(const Endpoint::Facts& facts) {
  return kConnectionHeaderBytes + size_t(facts.steps) * facts.stepBytes;
}

Connection& connectionIn(const Mapping& memory) { return *static_cast<Connection*>(memory.address()); }

// Goodbye to the ranks that stay.
socket::Goodbye goodbyeFor(const Interrupt& interrupt) {
  const Status differing = interrupt.differing();
  socket::Goodbye goodbye{};
  goodbye.header = {socket::kGoodbye, uint32_t(interrupt.raised() ? ncclRemoteError : ncclSuccess), {}};
  if (!differing.ok()) goodbye.header.step = uint32_t(differing.code);
  differing.sentence.copy(goodbye.sentence, sizeof goodbye.sentence - 1);
  return goodbye;
}

constexpr uint32_t kIncoming = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT;

// The network may be unreachable for a moment, so an endpoint retries to connect, at this interval and until this
// timeout.
constexpr uint64_t kConnectTimeoutNanoseconds = 30'000'000'000;
constexpr long kRetryIntervalNanoseconds = 100'000'000;
// A dropped SYN is no error: TCP sends it at 0, 1, 3, 7 and 15 s and gives up after 31 s.
constexpr int kSynRetries = 4;
// A peer that refuses connections has left the communicator or died. The agents report that within this timeout.
constexpr uint64_t kRefusedTimeoutNanoseconds = 3'000'000'000;

bool isTransient(int error) {
  return error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN || error == ENETDOWN || error == ETIMEDOUT;
}
bool wouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Status SocketEndpoint::make(const Setup& setup, std::unique_ptr<SocketEndpoint>& out) {
  const size_t bytes = ringBytes(setup.facts);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return {ncclSystemError, "no memory for the " + std::to_string(bytes) + " bytes of a connection with " +
                                 setup.facts.peerName + ": " + strerror(errno)};
  }
  out.reset(new SocketEndpoint(setup, Mapping(memory, bytes), std::make_unique<StepCall[]>(setup.facts.steps)));
  return {};
}

SocketEndpoint::SocketEndpoint(const Setup& setup, Mapping memory, std::unique_ptr<StepCall[]> calls)
    : Endpoint(setup.facts, setup.current, connectionIn(memory), nullptr, calls.get()),
      memory_(std::move(memory)),
      calls_(std::move(calls)),
      ring_(connectionIn(memory_)),
      slots_(static_cast<std::byte*>(memory_.address()) + kConnectionHeaderBytes),
      proxy_(setup.proxy),
      interrupt_(setup.interrupt),
      ownBell_(setup.own),
      gonePeers_(setup.gonePeers) {
  // A sender has no free slots before the connection is established: a slot posted to one that never is would be lost.
  if (facts().sends) ring_.head.store(uint64_t(0) - facts().steps, std::memory_order_relaxed);
}

SocketEndpoint::~SocketEndpoint() {
  if (socket_.valid() && !leaving_) proxy_->remove(socket_.get(), *this);
}

int SocketEndpoint::sendGoodbye() {
  if (!socket_.valid()) return -1;
  if (!leaving_) {
    proxy_->remove(socket_.get(), *this);
    goodbye_ = goodbyeFor(interrupt_);
    goodbyeDone_ = 0;
  }
  leaving_ = true;
  // In the middle of a slot the peer would take a goodbye for payload.
  if (!open_ || closed_ || (facts().sends && headerDone_ > 0)) return -1;
  while (goodbyeDone_ < sizeof goodbye_) {
    const ssize_t sent = send(socket_.get(), reinterpret_cast<const char*>(&goodbye_) + goodbyeDone_,
                              sizeof goodbye_ - goodbyeDone_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return wouldBlock(errno) ? socket_.get() : -1;
    goodbyeDone_ += size_t(sent);
  }
  return -1;
}

std::string SocketEndpoint::describeLoss(const std::string& why) const {
  const std::string where =
      facts().channel == kPairChannel ? "" : " (ring of channel " + std::to_string(facts().channel) + ")";
  return "lost the connection with " + facts().peerName + where + ": " + why;
}

void SocketEndpoint::peerLeftEarly() {
  if (goodbye_.header.step != ncclInvalidUsage)
    return fail("it has left the communicator without receiving all that this rank sent");
  closed_ = true;
  interrupt_.raise(goodbyeStatus());
}

void SocketEndpoint::fail(const std::string& why) {
  closed_ = true;
  interrupt_.raise({ncclRemoteError, describeLoss(why)}, facts().peer, FailureScope::alone);
}

// An aborting peer may end its connection in the middle of a slot, which a receiver may not need. A receiving peer
// always sends a goodbye; without it, data that this rank has sent may be lost.
void SocketEndpoint::lost(const std::string& why) {
  if (facts().sends) return fail(why);
  lostReason_ = describeLoss(why);
  closed_ = true;
  ring(ownBell_);  // wakes a block that sleeps until the next slot, which will not come
}

Status SocketEndpoint::gone() {
  if (!open_.load(std::memory_order_acquire)) return gonePeers_.why(facts().peer);
  if (facts().sends && !peerLeft_ && idle()) {
    // A goodbye may have arrived that the proxy has not read yet. Read it, or this rank would send to nobody.
    peerSent_.store(true, std::memory_order_seq_cst);
    move();
  }
  if (!peerLeft_ && !closed_) {
    // A rank that left in order sends a goodbye after its data; a rank that failed keeps the connection and sends none.
    Status why = gonePeers_.why(facts().peer);
    return why.code == ncclRemoteError ? why : Status{};
  }
  std::lock_guard lock(mutex_);
  if (!peerLeft_) return lostReason_.empty() ? Status{} : Status{ncclRemoteError, lostReason_};
  return goodbyeStatus();
}

Status SocketEndpoint::goodbyeStatus() const {
  if (goodbye_.header.step == ncclSuccess) return leftInOrder();
  if (goodbye_.header.step == ncclInvalidUsage) return {ncclInvalidUsage, goodbye_.sentence};
  const Status why = gonePeers_.why(facts().peer);  // the agent's report may have more detail
  return why.ok() ? Status{ncclRemoteError, facts().peerName + " left the communicator after an error, or aborted it"}
                  : why;
}

// --- Connection setup

bool SocketEndpoint::beginConnecting() {
  sockaddr_storage storage{};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  socklen_t length = 0;
  if (inet_pton(AF_INET, address_.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(uint16_t(port_));
    length = sizeof *v4;
  } else if (inet_pton(AF_INET6, address_.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(uint16_t(port_));
    length = sizeof *v6;
  }
  if (length == 0 || port_ == 0) {
    fail("the plan gives it no address to connect to (\"" + address_ + "\" port " + std::to_string(port_) + ")");
    return false;
  }
  socket_.reset(::socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) {
    const int error = errno;  // the fault is this rank's, not the peer's
    closed_ = true;
    interrupt_.raise({ncclSystemError, "cannot connect to " + facts().peerName + ": no socket: " + strerror(error) +
                                           limitBehind(error)});
    return false;
  }
  const int on = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_SYNCNT, &kSynRetries, sizeof kSynRetries);
  if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0 || errno == EINPROGRESS) return true;
  return scheduleRetry(errno);
}

bool SocketEndpoint::shouldRetry(int error) const {
  const uint64_t tried = nowNanoseconds() - connectStart_;
  return isTransient(error) ? tried < kConnectTimeoutNanoseconds
                            : error == ECONNREFUSED && tried < kRefusedTimeoutNanoseconds;
}

// Replaces the socket by a timer, whose expiry starts the next attempt.
bool SocketEndpoint::scheduleRetry(int error) {
  helloDone_ = headerDone_ = 0;
  if (!shouldRetry(error)) {
    fail("connecting to " + address_ + " port " + std::to_string(port_) + ": " + strerror(error));
    return false;
  }
  socket_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  const itimerspec once{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = kRetryIntervalNanoseconds}};
  if (!socket_.valid() || timerfd_settime(socket_.get(), 0, &once, nullptr) != 0) {
    fail(std::string("no timer: ") + strerror(errno));
    return false;
  }
  waitsToRetry_ = true;
  return true;
}

void SocketEndpoint::watchConnecting() {
  if (Status status = proxy_->add(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, *this); !status.ok())
    fail(status.sentence);
}

void SocketEndpoint::connect(std::string_view address, uint32_t port, const socket::Hello& hello) {
  {
    std::lock_guard lock(mutex_);
    hello_ = hello;
    address_ = address;
    port_ = port;
    connectStart_ = nowNanoseconds();
    if (beginConnecting()) watchConnecting();
  }
  move();  // the proxy's thread may have found the mutex locked and returned
}

bool SocketEndpoint::adopt(Descriptor& connection) {
  {
    std::lock_guard lock(mutex_);
    if (socket_.valid()) return false;
    socket_ = std::move(connection);
    const int on = 1;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const socket::SlotHeader welcome{socket::kWelcomeMagic, 0, {}};
    if (send(socket_.get(), &welcome, sizeof welcome, MSG_NOSIGNAL | MSG_DONTWAIT) != ssize_t(sizeof welcome)) {
      fail(std::string("it does not take our welcome: ") + strerror(errno));
      return true;
    }
    open_.store(true, std::memory_order_release);
  }
  if (Status status = proxy_->add(socket_.get(), kIncoming, *this); !status.ok()) {
    std::lock_guard lock(mutex_);
    fail(status.sentence);
  }
  return true;
}

// The listener accepted the connection and ended it.
void SocketEndpoint::connectionRefused() {
  refused_ = false;
  retryAfter(ECONNREFUSED);
}

void SocketEndpoint::retryAfter(int error) {
  proxy_->remove(socket_.get(), *this);
  if (scheduleRetry(error)) watchConnecting();
}

// Sender: sends the hello and receives the welcome.
void SocketEndpoint::handshake() {
  if (waitsToRetry_) {
    uint64_t expired = 0;
    if (read(socket_.get(), &expired, sizeof expired) != ssize_t(sizeof expired)) return;
    waitsToRetry_ = false;
    proxy_->remove(socket_.get(), *this);
    if (beginConnecting()) watchConnecting();
    return;
  }
  if (helloDone_ < sizeof hello_) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error == ECONNRESET) return connectionRefused();
    if (error != 0) return retryAfter(error);
    const ssize_t sent = send(socket_.get(), reinterpret_cast<const char*>(&hello_) + helloDone_,
                              sizeof hello_ - helloDone_, MSG_NOSIGNAL | MSG_DONTWAIT);
    refused_ = sent < 0 && !wouldBlock(errno) && errno != ENOTCONN;
    if (refused_) return connectionRefused();
    if (sent > 0) helloDone_ += size_t(sent);
    if (helloDone_ < sizeof hello_) return;
  }
  if (!receiveHeader()) {
    if (refused_) connectionRefused();
    return;
  }
  headerDone_ = 0;
  if (header_.bytes != socket::kWelcomeMagic) return fail("what listens there is no engine of this communicator");
  ring_.head.store(0, std::memory_order_seq_cst);
  open_.store(true, std::memory_order_release);
  ring(ownBell_);
}

const StepCall* SocketEndpoint::unread() const {
  const uint64_t step = ring_.head.load(std::memory_order_seq_cst);
  return ring_.tail.load(std::memory_order_seq_cst) != step ? &calls_[step % facts().steps] : nullptr;
}

// --- Data transfer

void SocketEndpoint::watch() {
  if (!facts().sends && connected() && !peerLeft_ && !closed_) proxy_->rearm(socket_.get(), kIncoming, *this);
}

void SocketEndpoint::onEvents(uint32_t events) {
  if ((events & ~uint32_t(EPOLLOUT)) != 0) peerSent_.store(true, std::memory_order_seq_cst);
  const uint64_t tail = ring_.tail.load();
  move();
  if (ring_.tail.load() == tail && unread() == nullptr) watch();  // less than a step arrived: the block sleeps on
}

void SocketEndpoint::move() {
  carryRequested_.store(true, std::memory_order_seq_cst);
  while (carryRequested_.load(std::memory_order_seq_cst) && mutex_.try_lock()) {
    carryRequested_.store(false, std::memory_order_seq_cst);
    carry();
    mutex_.unlock();
  }
}

void SocketEndpoint::carry() {
  if (!socket_.valid()) return;
  if (closed_) {
    if (!idle()) fail("what this rank sent has not arrived");
    return;
  }
  if (!facts().sends) return receiveSlots();
  if (!open_.load(std::memory_order_relaxed)) handshake();
  if (closed_ || !open_.load(std::memory_order_relaxed)) return;
  sendSlots();
}

size_t SocketEndpoint::receiveSome(void* to, size_t bytes) {
  const ssize_t got = recv(socket_.get(), to, bytes, MSG_DONTWAIT);
  if (got > 0) return size_t(got);
  if (got < 0 && wouldBlock(errno)) return 0;
  if (peerLeft_) {
    closed_ = got < 0;
  } else if (facts().sends && !open_) {
    refused_ = true;
  } else {
    lost(got == 0 ? "it has closed the connection, or died" : strerror(errno));
  }
  return 0;
}

bool SocketEndpoint::receiveHeader() {
  while (headerDone_ < sizeof header_) {
    const size_t got = receiveSome(reinterpret_cast<char*>(&header_) + headerDone_, sizeof header_ - headerDone_);
    if (got == 0) return false;
    headerDone_ += got;
  }
  return true;
}

void SocketEndpoint::receiveGoodbye() {
  while (goodbyeDone_ < sizeof goodbye_) {
    const size_t got = receiveSome(reinterpret_cast<char*>(&goodbye_) + goodbyeDone_, sizeof goodbye_ - goodbyeDone_);
    if (got == 0) return;
    goodbyeDone_ += got;
  }
  goodbye_.sentence[sizeof goodbye_.sentence - 1] = '\0';
  peerLeft_ = true;
  ring(ownBell_);  // wakes a block that sleeps until the next slot, which will not come
}

void SocketEndpoint::receiveSlots() {
  while (!peerLeft_ && receiveHeader()) {
    if (header_.bytes == socket::kGoodbye) {
      goodbye_.header = header_;
      goodbyeDone_ = std::max(goodbyeDone_, sizeof header_);
      return receiveGoodbye();
    }
    const uint64_t step = ring_.tail.load(std::memory_order_relaxed);
    if (header_.bytes > facts().stepBytes || header_.step != uint32_t(step)) {
      return fail("it announced step " + std::to_string(header_.step) + " of " + std::to_string(header_.bytes) +
                  " bytes where step " + std::to_string(uint32_t(step)) + " of at most " +
                  std::to_string(facts().stepBytes) + " was due");
    }
    if (step - ring_.head.load(std::memory_order_seq_cst) == facts().steps) return;  // release() calls this again
    while (payloadDone_ < header_.bytes) {
      const size_t got = receiveSome(slotOf(step) + payloadDone_, header_.bytes - payloadDone_);
      if (got == 0) return;
      payloadDone_ += got;
    }
    ring_.stepBytes[step % facts().steps].store(header_.bytes, std::memory_order_relaxed);
    calls_[step % facts().steps] = header_.call;
    headerDone_ = payloadDone_ = 0;
    ring_.tail.store(step + 1, std::memory_order_seq_cst);
    ring(ownBell_);
  }
}

void SocketEndpoint::sendSlots() {
  // A receiving peer sends nothing but its goodbye. Data that arrives after this check raises another event.
  if (peerSent_.exchange(false, std::memory_order_seq_cst) && !peerLeft_) receiveGoodbye();
  while (!closed_) {
    const uint64_t step = ring_.head.load(std::memory_order_relaxed);
    if (step == ring_.tail.load(std::memory_order_seq_cst)) return;
    if (peerLeft_) return peerLeftEarly();
    const uint32_t bytes = ring_.stepBytes[step % facts().steps].load(std::memory_order_relaxed);
    header_ = {bytes, uint32_t(step), calls_[step % facts().steps]};
    iovec parts[2] = {{reinterpret_cast<char*>(&header_) + headerDone_, sizeof header_ - headerDone_},
                      {slotOf(step) + payloadDone_, bytes - payloadDone_}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (!wouldBlock(errno)) lost(strerror(errno));
      return;  // epoll notifies the proxy when the socket has room again
    }
    const size_t ofHeader = std::min(size_t(sent), sizeof header_ - headerDone_);
    headerDone_ += ofHeader;
    payloadDone_ += size_t(sent) - ofHeader;
    if (headerDone_ < sizeof header_ || payloadDone_ < bytes) continue;
    headerDone_ = payloadDone_ = 0;
    ring_.head.store(step + 1, std::memory_order_seq_cst);
    ring(ownBell_);
  }
}

}  // namespace ncclrun
