// How a connection moves from a port that has failed to another one.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/debug.h"
#include "net/verbs/verbs_link.h"
#include "net/verbs/verbs_network.h"

namespace ncclrun::net {
namespace {

constexpr uint32_t kMaxMoves = 64;  // of a connection: then its ports come and go too often
// An idle sender answers when it has something to send, so only the sender's wait has an end.
constexpr uint64_t kMoveTimeout = 20'000'000'000;
// A card that has failed may never complete what is posted.
constexpr uint64_t kDrainTimeout = 1'000'000'000;

}  // namespace

// The event that says that a port is down may be on its way.
bool VerbsLink::isUsable(uint32_t device) const {
  const Card& card = *network_.card(device);
  const uint8_t port = network_.port(device).port;
  return card.defect(port).empty() && card.port(port).state == verbs::kPortActive;
}

std::optional<uint32_t> VerbsLink::otherDevice() const {
  const auto count = uint32_t(network_.devices().size());
  for (uint32_t i = 1; i < count; i++) {
    const uint32_t device = (path_->device() + i) % count;
    if (isUsable(device)) return device;
  }
  return {};
}

Status VerbsLink::pathFailed(const std::string& why) {
  if (!otherDevice().has_value() || move_ == kMaxMoves) {
    const bool isAlone = network_.devices().size() == 1;
    return fail(ncclRemoteError, why + (isAlone ? "" : "; this host has no other port to go on with"));
  }
  path_->stop();
  isMoving_ = true;
  movingSince_ = nowNanoseconds();
  cause_ = why;
  move_++;
  isMoveSent_ = isConnected_ = isPeerReady_ = false;
  peerMove_.reset();
  return {};
}

bool VerbsLink::isDrained() { return openReceives_ == 0 || nowNanoseconds() - movingSince_ > kDrainTimeout; }

Status VerbsLink::handleMove(const ControlSocket::Message& message) {
  if (message.kind == ControlKind::ready && message.body.size() == sizeof move_) {
    uint32_t number = 0;
    std::memcpy(&number, message.body.data(), sizeof number);
    isPeerReady_ = isPeerReady_ || (isMoving_ && number == move_);
    return {};
  }
  if (message.kind != ControlKind::move) return refuse(message);
  std::string why;
  const std::optional<Move> read = readMove(message.body, uint32_t(network_.devices().size()), kMaxMoves, why);
  if (!read.has_value()) return fail(ncclRemoteError, why);
  const Move& move = *read;
  if (move.number < move_ || (!isMoving_ && move.number == move_)) return {};  // given up since
  if (!isMoving_) {
    NCCLRUN_TRY(pathFailed("the other side's path has failed"));
  }
  // Both may have chosen a port: the sender's is taken.
  const bool isNewer = move.number > move_;
  if (!isNewer && isMoveSent_ && move.device != path_->device()) {
    if (sends_) return {};
    isMoveSent_ = false;
  }
  if (isNewer) isMoveSent_ = false;
  move_ = move.number;
  isConnected_ = isPeerReady_ = false;
  peerMove_ = move;
  return {};
}

Status VerbsLink::reregister() {
  for (const auto& one : registered_) {
    RegisteredRegion* here = nullptr;
    NCCLRUN_TRY(path_->card()->registrations().take(one->region, here));
    one->card->registrations().release(one->here);
    one->here = here;
    one->card = path_->card();
  }
  return {};
}

Status VerbsLink::makeNewPath() {
  std::optional<uint32_t> device = otherDevice();
  if (peerMove_.has_value()) {
    device = peerMove_->device;
    if (!isUsable(*device)) {
      // The other side's choice is down here: another one, by a move of its own.
      peerMove_.reset();
      device = otherDevice();
      move_++;
    }
  }
  if (!device.has_value()) return fail(ncclRemoteError, cause_ + "; this host has no other port to go on with");
  const uint32_t count = queuePairs();
  path_.reset();
  broken_.clear();
  brokenByFlush_ = isDefect_ = false;
  NCCLRUN_TRY(openPath(*device));
  NCCLRUN_TRY(createQueuePairs(count));
  return reregister();
}

Status VerbsLink::advanceMove(Progress& progress, bool& resumed) {
  resumed = false;
  while (const auto message = control_.receive()) NCCLRUN_TRY(handleMove(*message));
  if (control_.isGone()) return fail(ncclRemoteError, "the other side has closed it, or its process is gone");
  if (sends_ && nowNanoseconds() - movingSince_ > kMoveTimeout)
    return fail(ncclRemoteError, cause_ + "; the other side does not go on over another port");
  // The new path may fail as well before the other side has come to it.
  const std::string defect = isMoveSent_ ? path_->defect() : "";
  if (isMoveSent_ && (!defect.empty() || !broken_.empty())) {
    const std::string why = defect.empty() ? broken_ : defect;
    isMoving_ = false;
    NCCLRUN_TRY(pathFailed(why));
  }
  if (!isMoveSent_) {
    const std::string before = network_.describe(path_->device());
    if (const Status status = makeNewPath(); !status.ok()) return fail(status.code, cause_ + "; " + status.sentence);
    const Move mine{
        .number = move_, .device = path_->device(), .progress = progress, .introduction = path_->introduction(splits_)};
    NCCLRUN_TRY(sendControl(ControlKind::move, std::as_bytes(std::span(&mine, 1))));
    isMoveSent_ = true;
    logWarning("the connection with " + peerAddress_ + " moves from " + before + " to " +
               network_.describe(path_->device()) + ": " + cause_);
  }
  if (!isConnected_ && peerMove_.has_value() && peerMove_->device == path_->device()) {
    NCCLRUN_TRY(adoptPeer(peerMove_->introduction));
    if (const Status status = path_->connect(peer_); !status.ok()) return failWith(status);
    NCCLRUN_TRY(sendReady());
    isConnected_ = true;
  }
  if (!isConnected_ || !isPeerReady_) return {};
  progress = peerMove_->progress;
  isMoving_ = false;
  resumed = true;
  return {};
}

}  // namespace ncclrun::net
