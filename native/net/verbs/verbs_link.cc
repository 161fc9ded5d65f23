#include "net/verbs/verbs_link.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/limits.h"
#include "net/socket/wire.h"
#include "net/verbs/verbs_network.h"

namespace ncclrun::net {
namespace {

constexpr size_t kAreaBytes = kGroupSlots * (sizeof(AdvertisementSlot) + sizeof(SizesSlot));
constexpr uint32_t kPsnBits = 0xff'ffff;
constexpr uint32_t kPollsPerLook = 256;  // that find nothing, until the socket is looked at without an event

std::string textOf(std::span<const std::byte> body) {
  return {reinterpret_cast<const char*>(body.data()), body.size()};
}

}  // namespace

VerbsLink::VerbsLink(Setup setup)
    : network_(setup.network),
      device_(setup.device),
      sends_(setup.sends),
      peerAddress_(std::move(setup.peer)),
      card_(network_.card(device_)),
      control_(std::move(setup.control)) {}

VerbsLink::~VerbsLink() {
  pairs_.clear();
  if (completions_ != nullptr) network_.destroyCompletionQueue(device_, completions_);
  for (RegisteredRegion* region : registered_) card_->registrations().release(region);
  if (areaRegion_ != nullptr) card_->registrations().release(areaRegion_);
}

std::string VerbsLink::where() const {
  const std::string peer = peer_.where[0] == '\0' ? "" : " (" + std::string(peer_.where.data()) + ")";
  return "the connection with " + peerAddress_ + peer + " from " + network_.describe(device_);
}

Status VerbsLink::fail(ncclResult_t code, const std::string& why) {
  if (!failure_.ok()) return failure_;
  failure_ = {code, where() + ": " + why};
  for (const auto& pair : pairs_) pair->stop();
  if (!control_.isGone()) control_.send(ControlKind::failed, std::as_bytes(std::span(why)));
  return failure_;
}

Status VerbsLink::start() {
  void* const memory = mmap(nullptr, kAreaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail(ncclSystemError, std::string("mmap: ") + std::strerror(errno));
  area_ = Mapping(memory, kAreaBytes);
  NCCLRUN_TRY(card_->registrations().take({.address = memory, .bytes = kAreaBytes}, areaRegion_));
  const VerbsPort& port = network_.port(device_);
  const verbs::PortAttributes attributes = card_->port(port.port);
  if (attributes.state != verbs::kPortActive) return fail(ncclSystemError, "the port is not active");
  maxWrite_ = std::max(attributes.maxMessage, uint32_t(1) << 20);
  gidIndex_ = port.gid.empty() ? 0 : card_->gidIndex(port.port, network_.gid(device_));
  if (gidIndex_ < 0) return fail(ncclSystemError, "the port does not have this GID any more");
  constexpr uint8_t kGrhRequired = 1;
  own_ = {.gid = network_.gid(device_),
          .lid = attributes.lid,
          .linkLayer = attributes.linkLayer,
          .mtu = uint8_t(attributes.activeMtu),
          .needsGrh = uint8_t(attributes.flags & kGrhRequired)};
  if (port.gid.empty()) card_->library().queryGid(card_->context(), port.port, 0, &own_.gid);
  uint32_t psn = 0;
  if (!fillRandom(&psn, sizeof psn)) return fail(ncclSystemError, "the system gives no random numbers");
  mine_.firstPsn = psn & kPsnBits;
  return network_.sockets().watch(control_.descriptor());
}

Status VerbsLink::createQueuePairs(uint32_t count) {
  const VerbsTuning& tuning = network_.config().tuning;
  // Of each group one completion for each queue pair that carries a part of it, and one for an advertisement.
  const uint32_t entries = kGroupSlots * (splits_ ? count : 1) + kGroupSlots + QueuePairHandle::kSends;
  completions_ = network_.createCompletionQueue(device_, entries);
  if (completions_ == nullptr) {
    const int error = errno;
    return fail(ncclSystemError, std::string("ibv_create_cq: ") + std::strerror(error) + limitBehind(error));
  }
  for (uint32_t i = 0; i < count; i++) {
    std::unique_ptr<QueuePairHandle> pair;
    NCCLRUN_TRY(QueuePairHandle::make(*card_, network_.port(device_).port, *completions_, tuning, pair));
    pairs_.push_back(std::move(pair));
  }
  // For advertisements.
  for (uint32_t i = 0; sends_ && i < kGroupSlots; i++) NCCLRUN_TRY(pairs_[0]->postReceive(0));
  return {};
}

Status VerbsLink::tell(ControlKind kind, std::span<const std::byte> body) {
  if (control_.send(kind, body)) return {};
  return fail(ncclRemoteError, "it was closed while it was made");
}

Status VerbsLink::hear(ControlKind kind, std::optional<ControlSocket::Message>& out) {
  out = control_.receive();
  if (control_.isGone()) return fail(ncclRemoteError, "it was closed while it was made");
  if (!out.has_value() || out->kind == kind) return {};
  if (out->kind == ControlKind::failed) return fail(ncclRemoteError, "the other side says: " + textOf(out->body));
  return fail(ncclRemoteError, "the other side's answer is not one of this protocol");
}

Status VerbsLink::introduce() {
  mine_.queuePairs = uint16_t(pairs_.size());
  mine_.splits = splits_ ? 1 : 0;
  mine_.port = own_;
  mine_.area = reinterpret_cast<uint64_t>(area());
  mine_.areaKey = areaRegion_->region->remoteKey;
  for (size_t i = 0; i < pairs_.size(); i++) mine_.numbers[i] = pairs_[i]->number();
  const std::string words = network_.describe(device_).substr(0, mine_.where.size() - 1);
  std::copy(words.begin(), words.end(), mine_.where.begin());
  return tell(ControlKind::introduction, std::as_bytes(std::span(&mine_, 1)));
}

Status VerbsLink::checkPeer(std::span<const std::byte> body) {
  const auto refused = [this](const std::string& why) { return fail(ncclRemoteError, why); };
  if (body.size() == sizeof peer_) std::memcpy(&peer_, body.data(), sizeof peer_);
  peer_.where.back() = '\0';
  if (body.size() != sizeof peer_ || peer_.magic != kIntroductionMagic || peer_.version != kVerbsWireVersion)
    return refused("the other side's introduction is not one of this protocol: do all hosts have the same version?");
  const bool isKnown = peer_.queuePairs >= 1 && peer_.queuePairs <= kMaxQueuePairs && peer_.port.mtu >= 1 &&
                       peer_.port.mtu <= 5 && (!sends_ || peer_.queuePairs == pairs_.size());
  if (!isKnown) return refused("the other side's introduction is not valid");
  if (peer_.port.linkLayer == own_.linkLayer) return {};
  const auto name = [](uint8_t layer) { return layer == verbs::kLinkEthernet ? "Ethernet (RoCE)" : "InfiniBand"; };
  return refused(std::string("this side's port is ") + name(own_.linkLayer) + ", the other's " +
                 name(peer_.port.linkLayer) + "; choose ports of one kind with NCCL_IB_HCA");
}

Status VerbsLink::connectQueuePairs() {
  for (uint32_t i = 0; i < pairs_.size(); i++) {
    const QueuePairHandle::Peer peer{
        .port = peer_.port, .number = peer_.numbers[i], .psn = (peer_.firstPsn + i) & kPsnBits};
    const Status status = pairs_[i]->connect(peer, own_, gidIndex_, (mine_.firstPsn + i) & kPsnBits);
    if (!status.ok()) return fail(status.code, status.sentence);
  }
  return {};
}

Status VerbsLink::establish(bool& ready) {
  ready = false;
  std::optional<ControlSocket::Message> heard;
  if (stage_ == Stage::start) {
    NCCLRUN_TRY(start());
    if (sends_) {
      const VerbsTuning& tuning = network_.config().tuning;
      splits_ = tuning.splits && tuning.queuePairs > 1;
      NCCLRUN_TRY(createQueuePairs(tuning.queuePairs));
      NCCLRUN_TRY(introduce());
    }
    stage_ = Stage::introduces;
  }
  if (stage_ == Stage::introduces) {
    NCCLRUN_TRY(hear(ControlKind::introduction, heard));
    if (!heard.has_value()) return {};
    NCCLRUN_TRY(checkPeer(heard->body));
    if (!sends_) {
      splits_ = peer_.splits != 0;
      NCCLRUN_TRY(createQueuePairs(peer_.queuePairs));
    }
    NCCLRUN_TRY(connectQueuePairs());
    NCCLRUN_TRY(sends_ ? tell(ControlKind::ready) : introduce());
    stage_ = sends_ ? Stage::ready : Stage::awaitsReady;
  }
  if (stage_ == Stage::awaitsReady) {
    NCCLRUN_TRY(hear(ControlKind::ready, heard));
    if (heard.has_value()) stage_ = Stage::ready;
  }
  ready = stage_ == Stage::ready;
  return {};
}

Status VerbsLink::registerMemory(const Region& region, Registration& out) {
  RegisteredRegion* made = nullptr;
  NCCLRUN_TRY(card_->registrations().take(region, made));
  registered_.push_back(made);
  out.opaque = made;
  return {};
}

Status VerbsLink::deregisterMemory(Registration registration) {
  const auto found = std::find(registered_.begin(), registered_.end(), registration.opaque);
  if (found == registered_.end()) return {};
  card_->registrations().release(*found);
  registered_.erase(found);
  return {};
}

size_t VerbsLink::poll(std::span<verbs::Completion> out) {
  const int got = completions_->context->pollCq(completions_, int(out.size()), out.data());
  if (got < 0) {
    broken_ = "ibv_poll_cq failed";
    return 0;
  }
  size_t good = 0;
  for (const verbs::Completion& one : out.first(size_t(got))) {
    if (one.status == verbs::completion_status::kSuccess) {
      out[good++] = one;
      continue;
    }
    // What follows the first failure is flushed, and says nothing.
    const bool isCause = one.status != verbs::completion_status::kFlushed;
    if (broken_.empty() || (isCause && brokenByFlush_))
      broken_ = "queue pair " + std::to_string(one.queuePair) + ": " + explainCompletion(one.status, one.vendorError);
    brokenByFlush_ = !isCause;
  }
  return good;
}

Status VerbsLink::health(bool& pollAgain) {
  pollAgain = false;
  if (!failure_.ok()) return failure_;
  const uint64_t events = network_.eventsSeen();
  if (broken_.empty() && !wasGone_ && events == seenEvents_ && ++emptyPolls_ % kPollsPerLook != 0) return {};
  seenEvents_ = events;
  if (wasGone_) return fail(ncclRemoteError, "the other side has closed it, or its process is gone");
  if (const auto heard = control_.receive(); heard.has_value()) {
    if (heard->kind == ControlKind::failed) return fail(ncclRemoteError, "the other side says: " + textOf(heard->body));
    return fail(ncclRemoteError, "the other side's message is not one of this protocol");
  }
  if (control_.isGone()) {
    // Completions of what the other side had sent before it went may have come since the last poll.
    wasGone_ = pollAgain = true;
    return {};
  }
  if (const std::string defect = card_->defect(network_.port(device_).port); !defect.empty())
    return fail(ncclSystemError, defect);
  if (!broken_.empty()) return fail(ncclRemoteError, broken_);
  for (const auto& pair : pairs_) {
    if (const int event = pair->event(); event != 0)
      return fail(ncclRemoteError, "queue pair " + std::to_string(pair->number()) + ": " + explainEvent(event));
  }
  return {};
}

}  // namespace ncclrun::net
