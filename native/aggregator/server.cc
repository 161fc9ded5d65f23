#include "aggregator/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"

namespace ncclrun::aggregator {
namespace {

constexpr uint64_t kTick = 100'000'000;        // ns
constexpr uint64_t kLateTick = 1'000'000'000;  // ns: this process was itself stopped, and counts silence anew
// Frames that one member may have handled before the others have their turn.
constexpr int kFramesPerTurn = 16;
constexpr size_t kEvents = 64;
// The other members' chunks come soon after the first one's: to sleep and to be woken costs more than to look again.
constexpr uint64_t kStaysAwake = 20'000;  // ns

Status cannotServe(const char* call) {
  const int error = errno;
  return {ncclSystemError, std::string("the aggregator: ") + call + ": " + std::strerror(error) + limitBehind(error)};
}

}  // namespace

Status Server::make(const ServerLimits& limits, Dial dial, std::unique_ptr<Server>& out) {
  std::unique_ptr<Server> made(new Server(limits, std::move(dial)));
  made->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!made->epoll_.valid()) return cannotServe("epoll_create1");
  made->discarded_ = std::make_unique_for_overwrite<std::byte[]>(kChunkBytes);
  out = std::move(made);
  return {};
}

Server::~Server() = default;

Status Server::watch(int descriptor, std::function<void()> isReadable) {
  watched_[descriptor] = std::move(isReadable);
  return watch(descriptor);
}

Status Server::watch(int descriptor) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0 ? Status{} : cannotServe("epoll_ctl");
}

void Server::adopt(Descriptor socket, std::string peer) {
  const int descriptor = socket.get();
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (!watch(descriptor).ok()) return;  // closes it, which the other side sees
  auto member = std::make_unique<Member>(std::move(socket), std::move(peer));
  member->interest = EPOLLIN;
  members_[descriptor] = std::move(member);
}

void Server::setInterest(Link& link, uint32_t events) {
  if (!link.writer.isEmpty()) events |= EPOLLOUT;
  if (link.interest == events) return;
  link.interest = events;
  const int descriptor = link.socket.get();
  epoll_event event{.events = events, .data = {.fd = descriptor}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

void Server::setInterest(Member& member) {
  // A paused member that closes its connection is lost: it awaits a result.
  setInterest(member, member.isBroken ? 0u : uint32_t(member.isPaused ? EPOLLRDHUP : EPOLLIN));
}

void Server::settle(Group& group) {
  for (Member* const member : group.takeChanged()) {
    member->writer.flush(member->socket.get());  // that a connection has ended is seen when it is read
    setInterest(*member);
  }
  if (Parent* const parent = group.parent(); parent != nullptr && parent->socket.valid()) setInterest(*parent, EPOLLIN);
}

void Server::advanceParent(const std::shared_ptr<Group>& group) {
  Parent& parent = *group->parent();
  const int before = parent.socket.get();
  group->advanceParent(nowNanoseconds());
  if (const int after = parent.socket.get(); after != before) {
    if (before >= 0) parents_.erase(before);
    if (after >= 0) {
      parents_[after] = group;
      parent.interest = EPOLLIN;
      if (const Status status = watch(after); !status.ok()) group->fail(status.code, status.sentence);
    }
  }
  settle(*group);
}

void Server::connectParents() {
  for (const std::shared_ptr<Group>& group : connecting_) advanceParent(group);
  std::erase_if(connecting_, [](const auto& group) { return !group->parent()->isConnecting(); });
}

void Server::end(Member& member, const std::string& why) {
  if (const std::shared_ptr<Group> group = member.group; group != nullptr) {
    group->remove(member, why);
    settle(*group);
  }
  members_.erase(member.socket.get());
}

void Server::join(Member& member) {
  if (!decodeJoin(member.words, member.request) || (!member.request.above.empty() && dial_ == nullptr)) {
    member.isBroken = true;
    return;
  }
  const Join& join = member.request.join;
  std::shared_ptr<Group>& group = groups_[{join.group, join.level, join.node}];
  if (group == nullptr) {
    group = std::make_shared<Group>(member.request, dial_, memory_, discarded_.get(), nowNanoseconds());
    if (group->parent() != nullptr) connecting_.push_back(group);
  }
  member.group = group;
  group->join(member);
}

// Bytes that the payload of a frame may have; none for one that may not come.
std::optional<Server::PayloadRange> Server::payloadOf(const Member& member, FrameKind kind) {
  if (member.group == nullptr)
    return kind == FrameKind::join ? std::optional<PayloadRange>({sizeof(Join), kMaxJoinBytes}) : std::nullopt;
  switch (kind) {
    case FrameKind::contribution:
      return {{1, kChunkBytes}};
    case FrameKind::leave:
    case FrameKind::heartbeat:
      return {{0, 0}};
    case FrameKind::joined:
      return member.isAggregator() ? std::optional<PayloadRange>({0, 0}) : std::nullopt;
    case FrameKind::failed:
      return member.isAggregator() ? std::optional<PayloadRange>({1, kMaxSentenceBytes}) : std::nullopt;
    default:
      return std::nullopt;
  }
}

void Server::handleHeader(Member& member) {
  const FrameHeader& header = member.reader.header();
  const std::optional<PayloadRange> payload = payloadOf(member, header.kind);
  if (header.magic != kFrameMagic || !payload.has_value() || header.bytes < payload->least ||
      header.bytes > payload->most) {
    member.isBroken = true;
    return;
  }
  member.hasPayload = header.bytes > 0;
  if (member.discardedSince != 0) {
    member.reader.expect(discarded_.get());
  } else if (header.kind == FrameKind::join || header.kind == FrameKind::failed) {
    member.words.resize(header.bytes);
    member.reader.expect(member.words.data());
  } else if (header.kind == FrameKind::contribution) {
    member.isPaused = !member.group->begin(member);
    hasPaused_ = hasPaused_ || member.isPaused;
  } else if (header.kind == FrameKind::leave) {
    member.group->leave(member);
  } else if (header.kind == FrameKind::joined) {
    member.group->ready(member);
  }
}

void Server::handlePayload(Member& member) {
  member.hasPayload = false;
  if (member.group == nullptr) return join(member);
  if (member.discardedSince != 0) return;
  if (member.reader.header().kind == FrameKind::failed) {
    const char* const sentence = reinterpret_cast<const char*>(member.words.data());
    const Status failure = failureOf(member.reader.header(), {sentence, member.words.size()});
    member.group->fail(failure.code, failure.sentence);
  } else {
    member.group->complete(member);
  }
}

// False: the connection has ended.
bool Server::readFrames(Member& member) {
  for (int frames = 0; !member.isPaused && !member.isBroken;) {
    switch (member.reader.step(member.socket.get(), frames < kFramesPerTurn)) {
      case FrameReader::Step::nothing:
        return true;
      case FrameReader::Step::closed:
        return false;
      case FrameReader::Step::header:
        handleHeader(member);
        if (!member.hasPayload) frames++;
        break;
      case FrameReader::Step::payload:
        handlePayload(member);
        frames++;
        break;
    }
  }
  return true;
}

// The member is gone afterwards if its connection has ended.
void Server::read(Member& member) {
  member.heardAt = nowNanoseconds();
  if (!readFrames(member)) return end(member, member.reader.whyClosed());
  if (member.isBroken && member.discardedSince == 0) return end(member, "it sends what this protocol does not have");
  if (member.group != nullptr) settle(*member.group);
  setInterest(member);
}

void Server::resumePaused() {
  if (!std::exchange(hasPaused_, false)) return;
  std::vector<Member*> resumed;
  for (const auto& [descriptor, member] : members_) {
    if (!member->isPaused) continue;
    member->isPaused = !member->group->begin(*member);
    hasPaused_ = hasPaused_ || member->isPaused;
    settle(*member->group);
    if (!member->isPaused) resumed.push_back(member.get());
  }
  // What was read ahead, no event reports.
  for (Member* const member : resumed) read(*member);
}

void Server::tick(uint64_t now) {
  if (now - nextTick_ > kLateTick) {
    for (const auto& [descriptor, member] : members_) member->heardAt = now;
    for (const auto& [descriptor, group] : parents_) group->parent()->forgetSilence(now);
  }
  const bool isHeartbeatDue = now >= nextHeartbeat_;
  if (isHeartbeatDue) nextHeartbeat_ = now + limits_.silenceTimeout / kHeartbeatsPerTimeout;
  for (const auto& [id, group] : groups_) {
    group->checkComplete(now, limits_.joinTimeout);
    group->checkSilence(now, limits_.silenceTimeout);
    if (isHeartbeatDue) group->sendHeartbeats();
    settle(*group);
  }
  std::vector<Member*> over;
  for (const auto& [descriptor, member] : members_) {
    const bool isSilent = member->group == nullptr && now - member->since > limits_.joinTimeout;
    const bool isTold = member->discardedSince != 0 && now - member->discardedSince > kDiscardFor;
    if (isSilent || isTold) over.push_back(member.get());
  }
  for (Member* const member : over) end(*member, "it has not closed its connection");
  const auto isOver = [&](const std::shared_ptr<Group>& group) { return group->isOver(now, limits_.joinTimeout); };
  std::erase_if(parents_, [&](const auto& entry) { return isOver(entry.second); });
  std::erase_if(connecting_, isOver);
  std::erase_if(groups_, [&](const auto& entry) { return isOver(entry.second); });
  nextTick_ = now + std::min(kTick, limits_.silenceTimeout / kHeartbeatsPerTimeout);
}

void Server::serveMember(Member& member, uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    member.writer.flush(member.socket.get());
    setInterest(member);
  }
  const bool hasEnded = (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0;
  if (hasEnded && (member.isPaused || member.isBroken)) {
    end(member, "it has closed the connection, or its process has ended");
  } else if ((events & EPOLLIN) != 0 || hasEnded) {
    read(member);
  }
}

Status Server::poll(int milliseconds) {
  connectParents();
  const uint64_t before = nowNanoseconds();
  const int untilTick = nextTick_ <= before ? 0 : int((nextTick_ - before) / 1'000'000) + 1;
  std::array<epoll_event, kEvents> events;
  const bool isBusy = before - servedAt_ < kStaysAwake;
  const int wait = isBusy ? 0 : milliseconds < 0 ? untilTick : std::min(milliseconds, untilTick);
  const int got = epoll_wait(epoll_.get(), events.data(), int(events.size()), wait);
  if (got < 0 && errno != EINTR) return cannotServe("epoll_wait");
  if (got > 0) servedAt_ = nowNanoseconds();
  for (int i = 0; i < got; i++) {
    const int descriptor = events[size_t(i)].data.fd;
    if (const auto member = members_.find(descriptor); member != members_.end()) {
      serveMember(*member->second, events[size_t(i)].events);
    } else if (const auto found = parents_.find(descriptor); found != parents_.end()) {
      const std::shared_ptr<Group> group = found->second;
      group->parent()->writer.flush(descriptor);
      advanceParent(group);
    } else if (const auto other = watched_.find(descriptor); other != watched_.end()) {
      other->second();
    }
  }
  resumePaused();
  if (const uint64_t now = nowNanoseconds(); now >= nextTick_) tick(now);
  memberCount_.store(members_.size(), std::memory_order_relaxed);
  groupCount_.store(groups_.size(), std::memory_order_relaxed);
  usedBytes_.store(memory_.used(), std::memory_order_relaxed);
  mostBytes_.store(memory_.mostUsed(), std::memory_order_relaxed);
  return {};
}

Server::Figures Server::figures() const {
  return {.members = memberCount_.load(std::memory_order_relaxed),
          .groups = groupCount_.load(std::memory_order_relaxed),
          .chunkBytes = usedBytes_.load(std::memory_order_relaxed),
          .mostChunkBytes = mostBytes_.load(std::memory_order_relaxed)};
}

}  // namespace ncclrun::aggregator
