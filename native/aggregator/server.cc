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
// A member that has been sent its failure closes its connection; one that does not has it closed.
constexpr uint64_t kDiscardFor = 5'000'000'000;  // ns
// Frames that one member may have handled before the others have their turn.
constexpr int kFramesPerTurn = 16;
constexpr size_t kEvents = 64;

Status cannotServe(const char* call) {
  const int error = errno;
  return {ncclSystemError, std::string("the aggregator: ") + call + ": " + std::strerror(error) + limitBehind(error)};
}

}  // namespace

Status Server::make(const ServerLimits& limits, std::unique_ptr<Server>& out) {
  std::unique_ptr<Server> made(new Server(limits));
  made->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!made->epoll_.valid()) return cannotServe("epoll_create1");
  made->discarded_ = std::make_unique_for_overwrite<std::byte[]>(kChunkBytes);
  out = std::move(made);
  return {};
}

Server::~Server() = default;

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

void Server::setInterest(Member& member) {
  // A paused member that closes its connection is lost: it awaits a result.
  const uint32_t reads = member.isBroken ? 0u : uint32_t(member.isPaused ? EPOLLRDHUP : EPOLLIN);
  const uint32_t writes = member.writer.isEmpty() ? 0u : uint32_t(EPOLLOUT);
  if (member.interest == (reads | writes)) return;
  member.interest = reads | writes;
  const int descriptor = member.socket.get();
  epoll_event event{.events = member.interest, .data = {.fd = descriptor}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

void Server::settle(Group& group) {
  for (Member* const member : group.takeChanged()) setInterest(*member);
}

void Server::end(Member& member, const std::string& why) {
  if (const std::shared_ptr<Group> group = member.group; group != nullptr) {
    group->remove(member, why);
    settle(*group);
  }
  members_.erase(member.socket.get());
}

void Server::join(Member& member) {
  const Join& join = member.join;
  if (join.version != kProtocolVersion || join.size == 0 || join.size > kMaxMembers || join.rank >= join.size) {
    member.isBroken = true;
    return;
  }
  std::shared_ptr<Group>& group = groups_[join.group];
  if (group == nullptr) group = std::make_shared<Group>(join, memory_, discarded_.get(), nowNanoseconds());
  member.group = group;
  group->join(member);
  settle(*group);
}

void Server::handleHeader(Member& member) {
  const FrameHeader& header = member.reader.header();
  Group* const group = member.group.get();
  const bool isJoin = group == nullptr;
  const uint32_t mostBytes = isJoin ? sizeof(Join) : header.kind == FrameKind::contribution ? kChunkBytes : 0;
  if (header.magic != kFrameMagic || header.bytes > mostBytes ||
      isJoin != (header.kind == FrameKind::join && header.bytes == sizeof(Join)) ||
      (header.kind == FrameKind::contribution && header.bytes == 0)) {
    member.isBroken = true;
    return;
  }
  member.hasPayload = header.bytes > 0;
  if (isJoin) {
    member.reader.expect(reinterpret_cast<std::byte*>(&member.join));
  } else if (member.discardedSince != 0) {
    member.reader.expect(discarded_.get());
  } else if (header.kind == FrameKind::contribution) {
    member.isPaused = !group->begin(member);
    hasPaused_ = hasPaused_ || member.isPaused;
    settle(*group);
  } else if (header.kind == FrameKind::leave) {
    group->leave(member);
    settle(*group);
  } else if (header.kind != FrameKind::heartbeat) {
    member.isBroken = true;
  }
}

void Server::handlePayload(Member& member) {
  member.hasPayload = false;
  if (member.group == nullptr) return join(member);
  if (member.discardedSince != 0) return;
  member.group->complete(member);
  settle(*member.group);
}

// The member is gone afterwards if its connection has ended.
void Server::read(Member& member) {
  member.heardAt = nowNanoseconds();
  for (int frames = 0;
       (frames < kFramesPerTurn || member.reader.hasHeader()) && !member.isPaused && !member.isBroken;) {
    switch (member.reader.step(member.socket.get())) {
      case FrameReader::Step::nothing:
        return;
      case FrameReader::Step::closed:
        return end(member, member.reader.whyClosed());
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
  if (member.isBroken && member.discardedSince == 0) return end(member, "it sends what this protocol does not have");
  setInterest(member);
}

void Server::resumePaused() {
  if (!std::exchange(hasPaused_, false)) return;
  for (const auto& [descriptor, member] : members_) {
    if (!member->isPaused) continue;
    member->isPaused = !member->group->begin(*member);
    hasPaused_ = hasPaused_ || member->isPaused;
    setInterest(*member);
    settle(*member->group);
  }
}

void Server::tick(uint64_t now) {
  if (now - nextTick_ > kLateTick) {
    for (const auto& [descriptor, member] : members_) member->heardAt = now;
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
  std::erase_if(groups_, [&](const auto& entry) { return entry.second->isOver(now, limits_.joinTimeout); });
  nextTick_ = now + std::min(kTick, limits_.silenceTimeout / kHeartbeatsPerTimeout);
}

Status Server::poll(int milliseconds) {
  const uint64_t before = nowNanoseconds();
  const int untilTick = nextTick_ <= before ? 0 : int((nextTick_ - before) / 1'000'000) + 1;
  std::array<epoll_event, kEvents> events;
  const int wait = milliseconds < 0 ? untilTick : std::min(milliseconds, untilTick);
  const int got = epoll_wait(epoll_.get(), events.data(), int(events.size()), wait);
  if (got < 0 && errno != EINTR) return cannotServe("epoll_wait");
  for (int i = 0; i < got; i++) {
    const auto found = members_.find(events[size_t(i)].data.fd);
    if (found == members_.end()) continue;
    Member& member = *found->second;
    const uint32_t reported = events[size_t(i)].events;
    if ((reported & EPOLLOUT) != 0) {
      member.writer.flush(member.socket.get());
      setInterest(member);
    }
    const bool hasEnded = (reported & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0;
    if (hasEnded && (member.isPaused || member.isBroken)) {
      end(member, "it has closed the connection, or its process has ended");
    } else if ((reported & EPOLLIN) != 0 || hasEnded) {
      read(member);
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
