#include "net/verbs/card.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/debug.h"
#include "base/limits.h"
#include "base/thread.h"
#include "net/verbs/queue_pair.h"

namespace ncclrun::net {
namespace {

Status cardFailure(const std::string& name, const char* what) {
  const int error = errno;
  return {ncclSystemError, "the InfiniBand device " + name + ": " + what + ": " + std::strerror(error) +
                               limitBehind(error) + lockedMemoryBehind(error)};
}

// Null with errno set.
verbs::Context* openNamed(const verbs::Library& library, const std::string& name) {
  int count = 0;
  verbs::Device* const devices = library.getDeviceList(&count);
  if (devices == nullptr) return nullptr;
  verbs::Context* context = nullptr;
  errno = ENODEV;
  for (int i = 0; i < count && context == nullptr; i++) {
    if (name == library.getDeviceName(devices[i])) context = library.openDevice(devices[i]);
  }
  const int error = errno;
  library.freeDeviceList(devices);
  errno = error;
  return context;
}

}  // namespace

Status Card::open(const std::string& name, std::shared_ptr<Card>& out) {
  static std::mutex mutex;
  static auto& cards = *new std::map<std::string, std::weak_ptr<Card>>;
  std::string why;
  const verbs::Library* const library = verbs::library(why);
  if (library == nullptr) return {ncclSystemError, "InfiniBand cannot be used: " + why};
  std::lock_guard lock(mutex);
  std::weak_ptr<Card>& known = cards[name];
  out = known.lock();
  if (out != nullptr) return {};
  std::shared_ptr<Card> card(new Card(name, *library));
  NCCLRUN_TRY(card->start());
  known = card;
  out = std::move(card);
  return {};
}

Status Card::start() {
  context_ = openNamed(library_, name_);
  if (context_ == nullptr) return cardFailure(name_, "it cannot be opened");
  if (library_.queryDevice(context_, &attributes_) != 0) return cardFailure(name_, "ibv_query_device");
  domain_ = library_.allocPd(context_);
  if (domain_ == nullptr) return cardFailure(name_, "ibv_alloc_pd");
  registrations_ = std::make_unique<Registrations>(library_, *domain_, name_);
  for (uint8_t number = 1; number != 0 && number <= attributes_.ports; ++number)
    isDown_[number].store(port(number).state != verbs::kPortActive, std::memory_order_relaxed);
  const int flags = fcntl(context_->asyncDescriptor, F_GETFL);
  if (flags < 0 || fcntl(context_->asyncDescriptor, F_SETFL, flags | O_NONBLOCK) != 0)
    return cardFailure(name_, "fcntl");
  stop_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_.valid()) return cardFailure(name_, "eventfd");
  try {
    thread_ = startThread("ncclrun-verbs", [this] { watchEvents(); });
  } catch (const std::system_error& error) {
    return {ncclSystemError,
            std::string("a thread for the events of ") + name_ + " cannot be started: " + error.what()};
  }
  return {};
}

Card::~Card() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  registrations_.reset();
  if (domain_ != nullptr) library_.deallocPd(domain_);
  if (context_ != nullptr) library_.closeDevice(context_);
}

verbs::PortAttributes Card::port(uint8_t port) const {
  verbs::PortAttributes found = {};
  if (library_.queryPort(context_, port, &found) != 0) found = {};
  return found;
}

int Card::gidIndex(uint8_t port, const verbs::Gid& gid) const {
  const int count = this->port(port).addresses;
  for (int i = 0; i < count; i++) {
    verbs::Gid found = {};
    if (library_.queryGid(context_, port, i, &found) == 0 && found == gid) return i;
  }
  return -1;
}

// A descriptor that is none is refused as such only where dma-bufs are known.
bool Card::hasDmaBuf() const {
  if (library_.regDmaBufMr == nullptr) return false;
  constexpr int kNone = -1;
  errno = 0;
  verbs::MemoryRegion* const made =
      library_.regDmaBufMr(domain_, 0, 0, 0, kNone, verbs::access::kLocalWrite | verbs::access::kRemoteWrite);
  if (made != nullptr) library_.deregMr(made);
  return errno == EBADF;
}

std::string Card::defect(uint8_t port) const {
  if (isDead_.load(std::memory_order_acquire)) return "the device has failed; look at the kernel's log (dmesg)";
  // The event that it has come back may be on its way.
  if (isDown_[port].load(std::memory_order_acquire) && this->port(port).state != verbs::kPortActive)
    return "the port is down: look at its cable and its switch";
  return {};
}

uint64_t Card::subscribe(std::function<void()> notify) {
  std::lock_guard lock(mutex_);
  subscribers_[nextSubscriber_] = std::move(notify);
  return nextSubscriber_++;
}

void Card::unsubscribe(uint64_t number) {
  std::lock_guard lock(mutex_);
  subscribers_.erase(number);
}

// An event names an object of any thread's. It is alive until the event is acknowledged: destroying it waits for that.
void Card::took(const verbs::AsyncEvent& event) {
  const auto port = uint8_t(event.element.port);
  switch (event.type) {
    case verbs::event::kPortActive:
      isDown_[port].store(false, std::memory_order_release);
      break;
    case verbs::event::kPortError:
      isDown_[port].store(true, std::memory_order_release);
      break;
    case verbs::event::kDeviceFatal:
      isDead_.store(true, std::memory_order_release);
      break;
    case verbs::event::kQueuePairFatal:
    case verbs::event::kQueuePairRequestError:
    case verbs::event::kQueuePairAccessError:
      static_cast<std::atomic<int>*>(event.element.queuePair->owner)->store(event.type, std::memory_order_release);
      break;
    case verbs::event::kCompletionQueueError:
      isDead_.store(true, std::memory_order_release);  // completions are lost: nothing over this card can be trusted
      break;
    default:
      break;
  }
}

void Card::watchEvents() {
  for (;;) {
    std::array<pollfd, 2> waits = {{{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                                    {.fd = context_->asyncDescriptor, .events = POLLIN, .revents = 0}}};
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) return;
    verbs::AsyncEvent event = {};
    while (library_.getAsyncEvent(context_, &event) == 0) {
      took(event);
      library_.ackAsyncEvent(&event);
      std::lock_guard lock(mutex_);
      for (const auto& [number, notify] : subscribers_) notify();
    }
  }
}

}  // namespace ncclrun::net
