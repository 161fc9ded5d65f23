// What the agent's frames ask for.
#include <signal.h>
#include <sys/epoll.h>

#include <cstdio>
#include <cstring>

#include "guardian/clock.h"
#include "guardian/guardian.h"
#include "guardian/spawn_order.h"

namespace ncclrun::guardian {
namespace {

// Who looks for what dead jobs left is a job that lasts: no start and no short job pays for it.
constexpr uint64_t kSweepAfterMs = 1000;

// A payload that is exactly one integer.
template <typename Integer>
bool readInteger(std::span<const char> payload, Integer& out) {
  if (payload.size() != sizeof out) return false;
  memcpy(&out, payload.data(), sizeof out);
  return true;
}

template <typename First, typename Second>
void sendPair(Channel& channel, FrameKind kind, uint32_t rank, First first, Second second) {
  char payload[sizeof first + sizeof second];
  memcpy(payload, &first, sizeof first);
  memcpy(payload + sizeof first, &second, sizeof second);
  channel.send(kind, 0, rank, payload, sizeof payload);
}

}  // namespace

bool Guardian::handleFrames() {
  Frame frame;
  for (;;) {
    switch (channel_.next(frame)) {
      case Channel::Next::none:
        return true;
      case Channel::Next::garbage:
        dprintf(2, "ncclrun-guardian: the agent sent bytes that are no frame of version %u; ending the ranks\n",
                kFrameVersion);
        return false;
      case Channel::Next::frame:
        if (handle(frame)) break;
        dprintf(2,
                "ncclrun-guardian: the agent sent a frame of kind 0x%02x with %u bytes that makes no sense here; "
                "ending the ranks\n",
                frame.header.kind, frame.header.payloadBytes);
        return false;
    }
  }
}

bool Guardian::handle(const Frame& frame) {
  switch (static_cast<FrameKind>(frame.header.kind)) {
    case FrameKind::spawn:
      return spawn(frame);
    case FrameKind::outputCredit: {
      uint64_t bytes = 0;
      if (!readInteger(frame.payload, bytes)) return false;
      credit_.add(bytes);
      return true;
    }
    case FrameKind::standardInput:
      feed(frame);
      return true;
    case FrameKind::pmi:
      answerPmi(frame);
      return true;
    case FrameKind::readStack:
      return readStacks(frame);
    case FrameKind::signal: {
      int32_t number = 0;
      if (!readInteger(frame.payload, number)) return false;
      signalRanks(frame.header.subject, number);
      return true;
    }
    case FrameKind::lease: {
      uint32_t milliseconds = 0;
      if (!readInteger(frame.payload, milliseconds)) return false;
      leaseMs_ = milliseconds;
      return true;
    }
    case FrameKind::heartbeat:
      channel_.send(FrameKind::heartbeat, 0, frame.header.subject);
      return true;
    case FrameKind::end:
      ending_ = true;
      return true;
    default:
      return false;
  }
}

bool Guardian::spawn(const Frame& frame) {
  SpawnOrder order;
  size_t offset = 0;
  const char* error = ordered_ ? "there was one already" : parseSpawnOrder(frame.payload, order, &offset);
  if (error != nullptr) {
    dprintf(2, "ncclrun-guardian: bad order to start ranks, at byte %zu of %zu: %s\n", offset, frame.payload.size(),
            error);
    return false;
  }
  ordered_ = true;
  leaseMs_ = order.leaseMs;
  if (order.runtimeDirectory[0] != '\0') runtimeDirectory_ = order.runtimeDirectory;
  credit_.add(order.outputCredit);
  ranks_.reserve(order.ranks.size());

  Spawner spawner(order.ranks.size());
  for (const RankOrder& rank : order.ranks) {
    const Spawned spawned = spawner.spawn(rank);
    if (spawned.pid < 0) {
      sendPair(channel_, FrameKind::spawnFailed, rank.rank, static_cast<uint32_t>(spawned.error),
               static_cast<uint32_t>(spawned.step));
      continue;
    }
    sendPair(channel_, FrameKind::spawned, rank.rank, static_cast<uint32_t>(spawned.pid), realtimeNs());
    const Rank& started = ranks_.emplace_back(rank.rank, rank.interactive, spawned);
    const uint64_t tag = (ranks_.size() - 1) * 2;
    watchOutput(started.output, tag);
    if (started.error.open()) watchOutput(started.error, tag + 1);
    watchPmi(ranks_.size() - 1, EPOLL_CTL_ADD);
  }
  sweepsAtMs_ = monotonicMs() + kSweepAfterMs;
  return true;
}

void Guardian::signalRanks(uint32_t subject, int number) {
  for (const Rank& rank : ranks_) {
    // A dead rank's number may be another process's by now; what it left behind is ended with the job.
    if (rank.state == Rank::State::running && (subject == kAllRanks || subject == rank.number)) kill(-rank.pid, number);
  }
}

void Guardian::feed(const Frame& frame) {
  const bool end = (frame.header.flags & kStdinEnd) != 0;
  const uint32_t subject = frame.header.subject;
  for (Rank& rank : ranks_) {
    if (subject == kAllRanks || rank.number == subject) rank.input.accept(frame.payload, end, channel_);
    if (rank.number == subject) return;
  }
  if (subject == kAllRanks) return;
  InputStream(-1, subject).accept(frame.payload, end, channel_);  // it could not be started
}

void Guardian::answerPmi(const Frame& frame) {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].number != frame.header.subject) continue;
    ranks_[i].pmi.answer(frame.payload, frame.header.flags);
    watchPmi(i, EPOLL_CTL_MOD);
  }
}

bool Guardian::readStacks(const Frame& frame) {
  uint32_t milliseconds = 0;
  std::vector<stack::Target> targets;
  if (!parseStackOrder(frame.payload, milliseconds, targets)) return false;
  if (stacks_.begin(frame.header.request, milliseconds, std::move(targets), channel_)) watchStacks();
  return true;
}

void Guardian::report(Rank& rank) {
  const bool output = rank.output.settle(channel_, credit_);
  const bool error = rank.error.settle(channel_, credit_);
  if (!output || !error) return;  // credit is short: we come back
  if (!unwarded_)
    sendPair(channel_, FrameKind::exited, rank.number, static_cast<int32_t>(rank.waitStatus), rank.endedAt);
  rank.state = Rank::State::reported;
}

}  // namespace ncclrun::guardian
