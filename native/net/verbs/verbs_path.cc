#include "net/verbs/verbs_path.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/limits.h"
#include "net/socket/wire.h"
#include "net/verbs/verbs_network.h"

namespace ncclrun::net {
namespace {

constexpr uint32_t kPsnBits = 0xff'ffff;

}  // namespace

VerbsPath::VerbsPath(VerbsNetwork& network, uint32_t device, std::span<std::byte> area)
    : network_(network), device_(device), area_(area), card_(network.card(device)) {}

Status VerbsPath::make(VerbsNetwork& network, uint32_t device, std::span<std::byte> area,
                       std::unique_ptr<VerbsPath>& out) {
  std::unique_ptr<VerbsPath> made(new VerbsPath(network, device, area));
  NCCLRUN_TRY(made->open());
  out = std::move(made);
  return {};
}

Status VerbsPath::open() {
  const VerbsPort& port = network_.port(device_);
  const auto failed = [&](const char* why) { return Status{ncclSystemError, network_.describe(device_) + ": " + why}; };
  const verbs::PortAttributes attributes = card_->port(port.port);
  if (attributes.state != verbs::kPortActive) return failed("the port is not active");
  maxWrite_ = std::max(attributes.maxMessage, uint32_t(1) << 20);
  own_ = {.gid = network_.gid(device_),
          .lid = attributes.lid,
          .linkLayer = attributes.linkLayer,
          .mtu = uint8_t(attributes.activeMtu),
          .needsGrh = uint8_t(attributes.flags & verbs::kGrhRequired)};
  // The index may have changed since the plan was made.
  gidIndex_ = port.gid.empty() ? 0 : card_->gidIndex(port.port, own_.gid);
  if (gidIndex_ < 0) return failed("the port does not have this GID any more");
  if (port.gid.empty()) card_->library().queryGid(card_->context(), port.port, 0, &own_.gid);
  if (!fillRandom(&firstPsn_, sizeof firstPsn_)) return failed("the system gives no random numbers");
  firstPsn_ &= kPsnBits;
  return card_->registrations().take({.address = area_.data(), .bytes = area_.size()}, areaRegion_);
}

VerbsPath::~VerbsPath() {
  pairs_.clear();
  loop_.reset();
  if (completions_ != nullptr) network_.destroyCompletionQueue(device_, completions_);
  if (areaRegion_ != nullptr) card_->registrations().release(areaRegion_);
}

Status VerbsPath::createQueuePairs(uint32_t count, bool splits, bool sends) {
  // Of each group one completion for each queue pair that carries a part of it, and one for an advertisement.
  const uint32_t entries = kGroupSlots * (splits ? count : 1) + kGroupSlots + QueuePairHandle::kSends;
  completions_ = network_.createCompletionQueue(device_, entries);
  if (completions_ == nullptr) {
    const int error = errno;
    return {ncclSystemError,
            network_.describe(device_) + ": ibv_create_cq: " + std::strerror(error) + limitBehind(error)};
  }
  VerbsTuning tuning = network_.config().tuning;
  if (!sends) tuning.trafficClass = tuning.receiversTrafficClass();
  for (uint32_t i = 0; i < count; i++) {
    std::unique_ptr<QueuePairHandle> pair;
    NCCLRUN_TRY(QueuePairHandle::make(*card_, network_.port(device_).port, *completions_, tuning, pair));
    pairs_.push_back(std::move(pair));
  }
  return {};
}

Introduction VerbsPath::introduction(bool splits) const {
  Introduction mine;
  mine.queuePairs = uint16_t(pairs_.size());
  mine.splits = splits ? 1 : 0;
  mine.firstPsn = firstPsn_;
  mine.port = own_;
  mine.area = reinterpret_cast<uint64_t>(area_.data());
  mine.areaKey = areaRegion_->region->remoteKey;
  for (size_t i = 0; i < pairs_.size(); i++) mine.numbers[i] = pairs_[i]->number();
  const std::string words = network_.describe(device_).substr(0, mine.where.size() - 1);
  std::copy(words.begin(), words.end(), mine.where.begin());
  return mine;
}

Status VerbsPath::connect(const Introduction& peer) {
  for (uint32_t i = 0; i < pairs_.size(); i++) {
    const QueuePairHandle::Peer other{
        .port = peer.port, .number = peer.numbers[i], .psn = (peer.firstPsn + i) & kPsnBits};
    NCCLRUN_TRY(pairs_[i]->connect(other, own_, gidIndex_, (firstPsn_ + i) & kPsnBits));
  }
  return {};
}

bool VerbsPath::announcesApart(size_t bytes) const {
  const VerbsTuning& tuning = network_.config().tuning;
  return bytes > tuning.adaptiveThreshold && tuning.isAdaptive(own_.linkLayer == verbs::kLinkInfiniBand);
}

void VerbsPath::stop() {
  for (const auto& pair : pairs_) pair->stop();
  if (loop_ != nullptr) loop_->stop();
}

Status VerbsPath::readBack(uint64_t id, uint64_t address, uint32_t remoteKey) {
  if (loop_ == nullptr) {
    NCCLRUN_TRY(
        QueuePairHandle::make(*card_, network_.port(device_).port, *completions_, network_.config().tuning, loop_));
    NCCLRUN_TRY(
        loop_->connect({.port = own_, .number = loop_->number(), .psn = firstPsn_}, own_, gidIndex_, firstPsn_));
  }
  verbs::ScatterGather into{
      .address = reinterpret_cast<uint64_t>(area_.data() + area_.size() - 1), .bytes = 1, .localKey = areaKey()};
  verbs::SendWorkRequest request = {};
  request.id = id;
  request.entries = &into;
  request.entryCount = 1;
  request.opcode = verbs::send_opcode::kRead;
  request.flags = verbs::send_flag::kSignaled;
  request.remoteAddress = address;
  request.remoteKey = remoteKey;
  return loop_->postSends(request, 1);
}

bool VerbsPath::mayRecover() const {
  const auto isWhole = [](const auto& pair) { return pair->event() == 0; };
  return !card_->isDead() && std::all_of(pairs_.begin(), pairs_.end(), isWhole);
}

std::string VerbsPath::defect() const {
  std::string why = card_->defect(network_.port(device_).port);
  for (const auto& pair : pairs_) {
    if (const int event = pair->event(); event != 0 && why.empty())
      why = "queue pair " + std::to_string(pair->number()) + ": " + explainEvent(event);
  }
  return why;
}

}  // namespace ncclrun::net
