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

Connection& ringIn(const Mapping& memory) { return *static_cast<Connection*>(memory.address()); }

// To the other ranks, which stay.
socket::Farewell farewellOf(const Interrupt& interrupt) {
  const Status differing = interrupt.differing();
  socket::Farewell farewell{};
  farewell.header = {socket::kFarewell, uint32_t(interrupt.raised() ? ncclRemoteError : ncclSuccess), {}};
  if (!differing.ok()) farewell.header.step = uint32_t(differing.code);
  differing.sentence.copy(farewell.sentence, sizeof farewell.sentence - 1);
  return farewell;
}

constexpr uint32_t kIncoming = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT;

// A network that is away for a moment is no reason not to begin: so long it is tried again, after so long each time.
constexpr uint64_t kTriesNanoseconds = 30'000'000'000;
constexpr long kPauseNanoseconds = 100'000'000;
// A packet that is dropped is no error: TCP gives up after 31 s, having sent it at 0, 1, 3, 7 and 15 s.
constexpr int kSynRetries = 4;
// A peer that refuses connections has left the communicator, or died, of which the agents tell.
constexpr uint64_t kNewsNanoseconds = 3'000'000'000;

bool mayPass(int error) {
  return error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN || error == ENETDOWN || error == ETIMEDOUT;
}
bool again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

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
    : Endpoint(setup.facts, setup.current, ringIn(memory), nullptr, calls.get()),
      memory_(std::move(memory)),
      calls_(std::move(calls)),
      ring_(ringIn(memory_)),
      slots_(static_cast<std::byte*>(memory_.address()) + kConnectionHeaderBytes),
      proxy_(setup.proxy),
      interrupt_(setup.interrupt),
      own_(setup.own),
      gonePeers_(setup.gonePeers) {
  // Nothing is free before the connection stands: what is handed over to one that never does would be lost.
  if (facts().sends) ring_.head.store(uint64_t(0) - facts().steps, std::memory_order_relaxed);
}

SocketEndpoint::~SocketEndpoint() {
  if (socket_.valid() && !leaves_) proxy_->remove(socket_.get(), *this);
}

int SocketEndpoint::sayFarewell() {
  if (!socket_.valid()) return -1;
  if (!leaves_) {
    proxy_->remove(socket_.get(), *this);
    farewell_ = farewellOf(interrupt_);
    farewellDone_ = 0;
  }
  leaves_ = true;
  // In the middle of a slot a farewell would be taken for payload.
  if (!open_ || over_ || (facts().sends && headerDone_ > 0)) return -1;
  while (farewellDone_ < sizeof farewell_) {
    const ssize_t sent = send(socket_.get(), reinterpret_cast<const char*>(&farewell_) + farewellDone_,
                              sizeof farewell_ - farewellDone_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return again(errno) ? socket_.get() : -1;
    farewellDone_ += size_t(sent);
  }
  return -1;
}

std::string SocketEndpoint::nameOf(const std::string& why) const {
  const std::string where =
      facts().channel == kPairChannel ? "" : " (ring of channel " + std::to_string(facts().channel) + ")";
  return "lost the connection with " + facts().peerName + where + ": " + why;
}

void SocketEndpoint::sentInVain() {
  if (farewell_.header.step != ncclInvalidUsage)
    return broken("it has left the communicator without receiving all that this rank sent");
  over_ = true;
  interrupt_.raise(farewell());
}

void SocketEndpoint::broken(const std::string& why) {
  over_ = true;
  interrupt_.raise({ncclRemoteError, nameOf(why)}, facts().peer, FailureScope::alone);
}

// A peer that aborts may be in the middle of a slot that nobody here waits for; that concerns who receives. It has a
// farewell for those who send to it in any case: without it, what this rank has sent may be lost.
void SocketEndpoint::lost(const std::string& why) {
  if (facts().sends) return broken(why);
  lostBecause_ = nameOf(why);
  over_ = true;
  ring(own_);  // if a block sleeps until the next slot, it has waited in vain
}

Status SocketEndpoint::gone() {
  if (!open_.load(std::memory_order_acquire)) return gonePeers_.why(facts().peer);
  if (facts().sends && !left_ && idle()) {
    // A farewell may lie there that the proxy has not come to: what is sent now would be sent to nobody.
    heard_.store(true, std::memory_order_seq_cst);
    move();
  }
  if (!left_ && !over_) {
    // One that left in order has a farewell behind what it sent; one that failed stays, and says nothing here.
    Status why = gonePeers_.why(facts().peer);
    return why.code == ncclRemoteError ? why : Status{};
  }
  std::lock_guard lock(mutex_);
  if (!left_) return lostBecause_.empty() ? Status{} : Status{ncclRemoteError, lostBecause_};
  return farewell();
}

Status SocketEndpoint::farewell() const {
  if (farewell_.header.step == ncclSuccess) return leftInOrder();
  if (farewell_.header.step == ncclInvalidUsage) return {ncclInvalidUsage, farewell_.sentence};
  const Status why = gonePeers_.why(facts().peer);  // which may say more
  return why.ok() ? Status{ncclRemoteError, facts().peerName + " left the communicator after an error, or aborted it"}
                  : why;
}

// --- setting up

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
    broken("the plan gives it no address to connect to (\"" + address_ + "\" port " + std::to_string(port_) + ")");
    return false;
  }
  socket_.reset(::socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) {
    const int error = errno;  // a fault of this side's
    over_ = true;
    interrupt_.raise({ncclSystemError, "cannot connect to " + facts().peerName + ": no socket: " + strerror(error) +
                                           limitBehind(error)});
    return false;
  }
  const int on = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_SYNCNT, &kSynRetries, sizeof kSynRetries);
  if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0 || errno == EINPROGRESS) return true;
  return beginPause(errno);
}

bool SocketEndpoint::triesAgain(int error) const {
  const uint64_t tried = nowNanoseconds() - begunAt_;
  return mayPass(error) ? tried < kTriesNanoseconds : error == ECONNREFUSED && tried < kNewsNanoseconds;
}

// In the socket's place stands a timer.
bool SocketEndpoint::beginPause(int error) {
  helloDone_ = headerDone_ = 0;
  if (!triesAgain(error)) {
    broken("connecting to " + address_ + " port " + std::to_string(port_) + ": " + strerror(error));
    return false;
  }
  socket_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  const itimerspec once{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = kPauseNanoseconds}};
  if (!socket_.valid() || timerfd_settime(socket_.get(), 0, &once, nullptr) != 0) {
    broken(std::string("no timer: ") + strerror(errno));
    return false;
  }
  pauses_ = true;
  return true;
}

void SocketEndpoint::watchConnecting() {
  if (Status status = proxy_->add(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, *this); !status.ok())
    broken(status.sentence);
}

void SocketEndpoint::connect(std::string_view address, uint32_t port, const socket::Hello& hello) {
  {
    std::lock_guard lock(mutex_);
    hello_ = hello;
    address_ = address;
    port_ = port;
    begunAt_ = nowNanoseconds();
    if (beginConnecting()) watchConnecting();
  }
  move();  // the proxy's thread may have come while this one had the mutex
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
      broken(std::string("it does not take our welcome: ") + strerror(errno));
      return true;
    }
    open_.store(true, std::memory_order_release);
  }
  if (Status status = proxy_->add(socket_.get(), kIncoming, *this); !status.ok()) {
    std::lock_guard lock(mutex_);
    broken(status.sentence);
  }
  return true;
}

// What listens there took the connection and ended it.
void SocketEndpoint::refused() {
  refused_ = false;
  pauseAfter(ECONNREFUSED);
}

void SocketEndpoint::pauseAfter(int error) {
  proxy_->remove(socket_.get(), *this);
  if (beginPause(error)) watchConnecting();
}

// Sender: hello out, welcome in.
void SocketEndpoint::introduce() {
  if (pauses_) {
    uint64_t expired = 0;
    if (read(socket_.get(), &expired, sizeof expired) != ssize_t(sizeof expired)) return;
    pauses_ = false;
    proxy_->remove(socket_.get(), *this);
    if (beginConnecting()) watchConnecting();
    return;
  }
  if (helloDone_ < sizeof hello_) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error == ECONNRESET) return refused();
    if (error != 0) return pauseAfter(error);
    const ssize_t sent = send(socket_.get(), reinterpret_cast<const char*>(&hello_) + helloDone_,
                              sizeof hello_ - helloDone_, MSG_NOSIGNAL | MSG_DONTWAIT);
    refused_ = sent < 0 && !again(errno) && errno != ENOTCONN;
    if (refused_) return refused();
    if (sent > 0) helloDone_ += size_t(sent);
    if (helloDone_ < sizeof hello_) return;
  }
  if (!receiveHeader()) {
    if (refused_) refused();
    return;
  }
  headerDone_ = 0;
  if (header_.bytes != socket::kWelcomeMagic) return broken("what listens there is no engine of this communicator");
  ring_.head.store(0, std::memory_order_seq_cst);
  open_.store(true, std::memory_order_release);
  ring(own_);
}

const StepCall* SocketEndpoint::unread() const {
  const uint64_t step = ring_.head.load(std::memory_order_seq_cst);
  return ring_.tail.load(std::memory_order_seq_cst) != step ? &calls_[step % facts().steps] : nullptr;
}

// --- carrying

void SocketEndpoint::watch() {
  if (!facts().sends && connected() && !left_ && !over_) proxy_->rearm(socket_.get(), kIncoming, *this);
}

void SocketEndpoint::onEvents(uint32_t events) {
  if ((events & ~uint32_t(EPOLLOUT)) != 0) heard_.store(true, std::memory_order_seq_cst);
  const uint64_t tail = ring_.tail.load();
  move();
  if (ring_.tail.load() == tail && unread() == nullptr) watch();  // less than a step: the block sleeps on
}

void SocketEndpoint::move() {
  wanted_.store(true, std::memory_order_seq_cst);
  while (wanted_.load(std::memory_order_seq_cst) && mutex_.try_lock()) {
    wanted_.store(false, std::memory_order_seq_cst);
    carry();
    mutex_.unlock();
  }
}

void SocketEndpoint::carry() {
  if (!socket_.valid()) return;
  if (over_) {
    if (!idle()) broken("what this rank sent has not arrived");
    return;
  }
  if (!facts().sends) return receiveSlots();
  if (!open_.load(std::memory_order_relaxed)) introduce();
  if (over_ || !open_.load(std::memory_order_relaxed)) return;
  sendSlots();
}

size_t SocketEndpoint::take(void* to, size_t bytes) {
  const ssize_t got = recv(socket_.get(), to, bytes, MSG_DONTWAIT);
  if (got > 0) return size_t(got);
  if (got < 0 && again(errno)) return 0;
  if (left_) {
    over_ = got < 0;
  } else if (facts().sends && !open_) {
    refused_ = true;
  } else {
    lost(got == 0 ? "it has closed the connection, or died" : strerror(errno));
  }
  return 0;
}

bool SocketEndpoint::receiveHeader() {
  while (headerDone_ < sizeof header_) {
    const size_t got = take(reinterpret_cast<char*>(&header_) + headerDone_, sizeof header_ - headerDone_);
    if (got == 0) return false;
    headerDone_ += got;
  }
  return true;
}

void SocketEndpoint::hearFarewell() {
  while (farewellDone_ < sizeof farewell_) {
    const size_t got = take(reinterpret_cast<char*>(&farewell_) + farewellDone_, sizeof farewell_ - farewellDone_);
    if (got == 0) return;
    farewellDone_ += got;
  }
  farewell_.sentence[sizeof farewell_.sentence - 1] = '\0';
  left_ = true;
  ring(own_);  // if a block sleeps until the next slot, it has waited in vain
}

void SocketEndpoint::receiveSlots() {
  while (!left_ && receiveHeader()) {
    if (header_.bytes == socket::kFarewell) {
      farewell_.header = header_;
      farewellDone_ = std::max(farewellDone_, sizeof header_);
      return hearFarewell();
    }
    const uint64_t step = ring_.tail.load(std::memory_order_relaxed);
    if (header_.bytes > facts().stepBytes || header_.step != uint32_t(step)) {
      return broken("it announced step " + std::to_string(header_.step) + " of " + std::to_string(header_.bytes) +
                    " bytes where step " + std::to_string(uint32_t(step)) + " of at most " +
                    std::to_string(facts().stepBytes) + " was due");
    }
    if (step - ring_.head.load(std::memory_order_seq_cst) == facts().steps) return;  // release() comes back here
    while (payloadDone_ < header_.bytes) {
      const size_t got = take(slotOf(step) + payloadDone_, header_.bytes - payloadDone_);
      if (got == 0) return;
      payloadDone_ += got;
    }
    ring_.stepBytes[step % facts().steps].store(header_.bytes, std::memory_order_relaxed);
    calls_[step % facts().steps] = header_.call;
    headerDone_ = payloadDone_ = 0;
    ring_.tail.store(step + 1, std::memory_order_seq_cst);
    ring(own_);
  }
}

void SocketEndpoint::sendSlots() {
  // The other way nothing comes but the farewell and the end. What is missed now comes back as an event.
  if (heard_.exchange(false, std::memory_order_seq_cst) && !left_) hearFarewell();
  while (!over_) {
    const uint64_t step = ring_.head.load(std::memory_order_relaxed);
    if (step == ring_.tail.load(std::memory_order_seq_cst)) return;
    if (left_) return sentInVain();
    const uint32_t bytes = ring_.stepBytes[step % facts().steps].load(std::memory_order_relaxed);
    header_ = {bytes, uint32_t(step), calls_[step % facts().steps]};
    iovec parts[2] = {{reinterpret_cast<char*>(&header_) + headerDone_, sizeof header_ - headerDone_},
                      {slotOf(step) + payloadDone_, bytes - payloadDone_}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (!again(errno)) lost(strerror(errno));
      return;  // the proxy is told when there is room again
    }
    const size_t ofHeader = std::min(size_t(sent), sizeof header_ - headerDone_);
    headerDone_ += ofHeader;
    payloadDone_ += size_t(sent) - ofHeader;
    if (headerDone_ < sizeof header_ || payloadDone_ < bytes) continue;
    headerDone_ = payloadDone_ = 0;
    ring_.head.store(step + 1, std::memory_order_seq_cst);
    ring(own_);
  }
}

}  // namespace ncclrun
