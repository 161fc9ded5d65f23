#include "net/verbs/verbs_link.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/verbs/verbs_network.h"

namespace ncclrun::net {
namespace {

// Behind the slots a cache line, into which flushes read.
constexpr size_t kAreaBytes = kGroupSlots * (sizeof(AdvertisementSlot) + sizeof(SizesSlot)) + 64;

// Failures that another path would not have. rdma_rxe ends what it has to send with a local operation error when its
// interface goes down.
bool isOfPath(int status) {
  return status == verbs::completion_status::kLocalOperation || status == verbs::completion_status::kRetryExceeded ||
         status == verbs::completion_status::kRnrRetryExceeded;
}

constexpr uint32_t kPollsPerLook = 4096;  // that find nothing, until the socket is looked at without an event

}  // namespace

VerbsLink::VerbsLink(Setup setup)
    : network_(setup.network),
      firstDevice_(setup.device),
      sends_(setup.sends),
      peerAddress_(std::move(setup.peer)),
      control_(std::move(setup.control)) {}

VerbsLink::~VerbsLink() {
  if (path_ != nullptr) path_->stop();
  for (const auto& one : registered_) one->card->registrations().release(one->here);
}

std::string VerbsLink::where() const {
  const std::string peer = peer_.where[0] == '\0' ? "" : " (" + std::string(peer_.where.data()) + ")";
  const uint32_t device = path_ == nullptr ? firstDevice_ : path_->device();
  return "the connection with " + peerAddress_ + peer + " from " + network_.describe(device);
}

Status VerbsLink::fail(ncclResult_t code, const std::string& why) {
  if (!failure_.ok()) return failure_;
  failure_ = {code, where() + ": " + why};
  if (path_ != nullptr) path_->stop();
  if (!control_.isGone()) control_.send(ControlKind::failed, std::as_bytes(std::span(why)));
  return failure_;
}

// --- Introductions

Status VerbsLink::openPath(uint32_t device) {
  if (area_.address() == nullptr) {
    void* const memory = mmap(nullptr, kAreaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return {ncclSystemError, std::string("mmap: ") + std::strerror(errno)};
    area_ = Mapping(memory, kAreaBytes);
  }
  pathNumber_++;
  return VerbsPath::make(network_, device, {area(), kAreaBytes}, path_);
}

Status VerbsLink::createQueuePairs(uint32_t count) {
  openReceives_ = 0;
  NCCLRUN_TRY(path_->createQueuePairs(count, splits_, sends_));
  // For advertisements.
  for (uint32_t i = 0; sends_ && i < kGroupSlots; i++) NCCLRUN_TRY(postReceive(0, kReceiveId));
  return {};
}

Status VerbsLink::postReceive(uint32_t pair, uint64_t id) {
  NCCLRUN_TRY(queuePair(pair).postReceive(id | kReceiveId));
  openReceives_++;
  return {};
}

Status VerbsLink::sendControl(ControlKind kind, std::span<const std::byte> body) {
  if (control_.send(kind, body)) return {};
  return fail(ncclRemoteError, "the other side has closed it, or its process is gone");
}

Status VerbsLink::sendReady() { return sendControl(ControlKind::ready, std::as_bytes(std::span(&move_, 1))); }

Status VerbsLink::expectControl(ControlKind kind, std::optional<ControlSocket::Message>& out) {
  out = control_.receive();
  if (control_.isGone()) return fail(ncclRemoteError, "it was closed while it was made");
  return !out.has_value() || out->kind == kind ? Status{} : refuse(*out);
}

Status VerbsLink::refuse(const ControlSocket::Message& message) {
  if (message.kind != ControlKind::failed)
    return fail(ncclRemoteError, "the other side's message is not of this protocol");
  const std::string text(reinterpret_cast<const char*>(message.body.data()), message.body.size());
  return fail(ncclRemoteError, "the other side reports: " + text);
}

Status VerbsLink::introduce() {
  const Introduction mine = path_->introduction(splits_);
  return sendControl(ControlKind::introduction, std::as_bytes(std::span(&mine, 1)));
}

Status VerbsLink::adoptPeer(const Introduction& peer) {
  peer_ = peer;
  const auto refused = [this](const std::string& why) { return fail(ncclRemoteError, why); };
  // The sender's number is the receiver's too, from the first introduction on.
  if (!path_->queuePairs().empty() && peer_.queuePairs != queuePairs())
    return refused("the other side's introduction is not valid");
  const uint8_t layer = path_->own().linkLayer;
  if (peer_.port.linkLayer == layer) return {};
  const auto name = [](uint8_t which) { return which == verbs::kLinkEthernet ? "Ethernet (RoCE)" : "InfiniBand"; };
  return refused(std::string("this side's port is ") + name(layer) + ", the other's " + name(peer_.port.linkLayer) +
                 "; choose ports of one kind with NCCL_IB_HCA");
}

Status VerbsLink::establish(bool& ready) {
  ready = false;
  std::optional<ControlSocket::Message> message;
  if (stage_ == Stage::start) {
    NCCLRUN_TRY(network_.sockets().watch(control_.descriptor()));
    if (const Status status = openPath(firstDevice_); !status.ok()) return failWith(status);
    if (sends_) {
      const VerbsTuning& tuning = network_.config().tuning;
      splits_ = tuning.splits && tuning.queuePairs > 1;
      if (const Status status = createQueuePairs(tuning.queuePairs); !status.ok()) return failWith(status);
      NCCLRUN_TRY(introduce());
    }
    stage_ = Stage::introduces;
  }
  if (stage_ == Stage::introduces) {
    NCCLRUN_TRY(expectControl(ControlKind::introduction, message));
    if (!message.has_value()) return {};
    std::string why;
    const std::optional<Introduction> peer = readIntroduction(message->body, why);
    if (!peer.has_value()) return fail(ncclRemoteError, why);
    NCCLRUN_TRY(adoptPeer(*peer));
    if (!sends_) {
      splits_ = peer_.splits != 0;
      if (const Status status = createQueuePairs(peer_.queuePairs); !status.ok()) return failWith(status);
    }
    if (const Status status = path_->connect(peer_); !status.ok()) return failWith(status);
    NCCLRUN_TRY(sends_ ? sendReady() : introduce());
    stage_ = sends_ ? Stage::ready : Stage::awaitsReady;
  }
  if (stage_ == Stage::awaitsReady) {
    NCCLRUN_TRY(expectControl(ControlKind::ready, message));
    if (message.has_value()) stage_ = Stage::ready;
  }
  ready = stage_ == Stage::ready;
  return {};
}

// --- Memory

Status VerbsLink::registerMemory(const Region& region, Registration& out) {
  const std::shared_ptr<Card>& card = path_->card();
  RegisteredRegion* here = nullptr;
  NCCLRUN_TRY(card->registrations().take(region, here));
  auto registered = std::make_unique<Registered>(Registered{region, {}, here, card});
  // The caller may close it, but another card needs it after a move.
  if (region.dmaBufDescriptor >= 0) {
    registered->dmaBuf.reset(fcntl(region.dmaBufDescriptor, F_DUPFD_CLOEXEC, 0));
    registered->region.dmaBufDescriptor = registered->dmaBuf.get();
  }
  out.opaque = registered.get();
  registered_.push_back(std::move(registered));
  return {};
}

Status VerbsLink::deregisterMemory(Registration registration) {
  const auto found = std::find_if(registered_.begin(), registered_.end(),
                                  [&](const auto& one) { return one.get() == registration.opaque; });
  if (found == registered_.end()) return {};
  (*found)->card->registrations().release((*found)->here);
  registered_.erase(found);
  return {};
}

// --- Completions

size_t VerbsLink::poll(std::span<verbs::Completion> out) {
  verbs::CompletionQueue& queue = path_->completions();
  const int got = queue.context->pollCq(&queue, int(out.size()), out.data());
  if (got < 0) {
    broken_ = "ibv_poll_cq failed";
    return 0;
  }
  size_t good = 0;
  for (const verbs::Completion& one : out.first(size_t(got))) {
    if ((one.id & kReceiveId) != 0) openReceives_--;
    if (one.status == verbs::completion_status::kSuccess) {
      out[good++] = one;
      continue;
    }
    // What follows the first failure is flushed, and says nothing.
    const bool isCause = one.status != verbs::completion_status::kFlushed;
    if (broken_.empty() || (isCause && brokenByFlush_)) {
      broken_ = "queue pair " + std::to_string(one.queuePair) + ": " + explainCompletion(one.status, one.vendorError);
      brokenByFlush_ = !isCause;
      isDefect_ = isCause && !isOfPath(one.status);
    }
  }
  return good;
}

Status VerbsLink::health(bool& pollAgain) {
  pollAgain = false;
  if (!failure_.ok() || isMoving_) return failure_;
  const uint64_t events = network_.eventsSeen();
  if (broken_.empty() && !wasGone_ && events == seenEvents_ && ++emptyPolls_ % kPollsPerLook != 0) return {};
  seenEvents_ = events;
  if (wasGone_) return fail(ncclRemoteError, "the other side has closed it, or its process is gone");
  if (const auto message = control_.receive(); message.has_value()) return handleMove(*message);
  if (control_.isGone()) {
    // Completions of what the other side had sent before it went may have come since the last poll.
    wasGone_ = pollAgain = true;
    return {};
  }
  if (!broken_.empty() && isDefect_) return fail(ncclRemoteError, broken_);
  const std::string defect = path_->defect();
  // Without another port it is worth waiting for this one: the card sends again until its retries are used up.
  if (!defect.empty() && (otherDevice().has_value() || !path_->mayRecover())) return pathFailed(defect);
  if (broken_.empty()) return {};
  return pathFailed(defect.empty() ? broken_ : broken_ + "; " + defect);
}

}  // namespace ncclrun::net
