#include "guardian/guardian.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdio>

#include "guardian/clock.h"
#include "guardian/leftovers.h"

namespace ncclrun::guardian {
namespace {

// What epoll says is ready. Input pipes need no number: there are few, and all that wait are tried.
// kPmi + i is the PMI connection of the rank with index i.
enum Ready : uint64_t { kSocket, kWarden, kSignals, kOutputs, kInputs, kStacks, kPmi };

// Output that waits for the socket beyond this makes us stop reading the pipes, which stops the ranks.
constexpr size_t kQueuedBytes = 1 << 20;
constexpr uint64_t kPromptMs = 100;
constexpr int kBatch = 8;    // pipes read between two looks at credit and queue
constexpr int kBatches = 8;  // between two looks at everything else

void control(int epoll, int operation, int fd, uint32_t events, uint64_t tag) {
  epoll_event event = {.events = events, .data = {.u64 = tag}};
  epoll_ctl(epoll, operation, fd, &event);
}

}  // namespace

Guardian::Guardian(int socket, int warden, int signals, const Ward& ward, uint32_t leaseMs)
    : channel_(socket),
      socket_(socket),
      warden_(warden),
      signals_(signals),
      everything_(epoll_create1(EPOLL_CLOEXEC)),
      outputs_(epoll_create1(EPOLL_CLOEXEC)),
      socketEvents_(EPOLLIN),
      runtimeDirectory_(ward.runtimeDirectory),
      agent_(ward.agent),
      leaseMs_(leaseMs),
      receivedAtMs_(monotonicMs()) {
  if (!runtimeDirectory_.empty()) lockRuntimeDirectory(runtimeDirectory_.c_str());
  control(everything_, EPOLL_CTL_ADD, socket_, socketEvents_, kSocket);
  if (warden >= 0) control(everything_, EPOLL_CTL_ADD, warden, EPOLLIN, kWarden);
  control(everything_, EPOLL_CTL_ADD, signals_, EPOLLIN, kSignals);
  control(everything_, EPOLL_CTL_ADD, outputs_, EPOLLIN, kOutputs);
}

Outcome Guardian::run() {
  for (;;) {
    watch();
    warden_.pulse(static_cast<uint32_t>(leaseMs_));
    epoll_event ready[8];
    const int count = epoll_wait(everything_, ready, 8, timeout());
    for (int i = 0; i < count; ++i) {
      switch (ready[i].data.u64) {
        case kSocket:
          agentThere_ = channel_.receive();
          if (!handleFrames()) return finish(Outcome::garbage);
          break;
        case kWarden:
          warden_.lost();
          return finish(Outcome::wardenGone);
        case kSignals:
          takeSignals();
          reap();
          break;
        case kOutputs:
          readOutputs();
          break;
        case kInputs:
          writeInputs();
          break;
        case kStacks:
          stacks_.serve(channel_);
          break;
        default:
          servePmi(ready[i].data.u64 - kPmi);
          break;
      }
    }
    settle();
    sendPrompts();
    if (ending_) return finish(Outcome::ended);
    if (!agentThere_ || !channel_.flush()) return finish(Outcome::agentGone);
    if (leaseRanOut()) return finish(Outcome::silence);
    sweep();
  }
}

// Tells epoll what we want to hear of now.
void Guardian::watch() {
  const uint32_t socketEvents = channel_.queued() > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN;
  if (socketEvents != socketEvents_) control(everything_, EPOLL_CTL_MOD, socket_, socketEvents, kSocket);
  socketEvents_ = socketEvents;

  const bool readOutput = mayReadOutput();
  const uint32_t outputEvents = readOutput ? EPOLLIN : 0u;
  if (readOutput != outputsWatched_) control(everything_, EPOLL_CTL_MOD, outputs_, outputEvents, kOutputs);
  outputsWatched_ = readOutput;

  for (Rank& rank : ranks_) {
    InputStream& input = rank.input;
    if (input.waiting() && !rank.inputWatched) control(everything_, EPOLL_CTL_ADD, input.fd(), EPOLLOUT, kInputs);
    if (!input.waiting() && rank.inputWatched && input.open())
      control(everything_, EPOLL_CTL_DEL, input.fd(), 0, kInputs);
    rank.inputWatched = input.waiting();
  }
}

void Guardian::takeSignals() {
  signalfd_siginfo information;
  while (read(signals_, &information, sizeof information) > 0) continue;
}

bool Guardian::mayReadOutput() const {
  return credit_.available() >= credit_.lineLimit() && channel_.queued() < kQueuedBytes;
}

void Guardian::readOutputs() {
  for (int batch = 0; batch < kBatches && mayReadOutput(); ++batch) {
    epoll_event ready[kBatch];
    const int count = epoll_wait(outputs_, ready, kBatch, 0);
    if (count <= 0) return;
    ++firstReady_;  // where credit is short, each pipe is first at times
    for (int i = 0; i < count && mayReadOutput(); ++i) readOutput(ready[(i + firstReady_) % count].data.u64);
    channel_.flush();
  }
}

void Guardian::readOutput(uint64_t tag) {
  Rank& rank = ranks_[tag / 2];
  OutputStream& stream = tag % 2 == 0 ? rank.output : rank.error;
  if (stream.open()) stream.read(channel_, credit_);
  if (rank.interactive && stream.begunSince() != 0 && promptsAtMs_ == 0) promptsAtMs_ = monotonicMs() + kPromptMs;
}

// The beginnings of lines, perhaps prompts, whose ends are late.
void Guardian::sendPrompts() {
  const uint64_t now = monotonicMs();
  if (promptsAtMs_ == 0 || now < promptsAtMs_) return;
  promptsAtMs_ = 0;
  for (Rank& rank : ranks_) {
    if (!rank.interactive) continue;
    for (OutputStream* stream : {&rank.output, &rank.error}) {
      const uint64_t since = stream->begunSince();
      if (since == 0) continue;
      const bool due = now >= since + kPromptMs;
      if (due && mayReadOutput()) {
        stream->sendBegun(channel_, credit_);
      } else {
        const uint64_t next = due ? now + kPromptMs : since + kPromptMs;
        if (promptsAtMs_ == 0 || next < promptsAtMs_) promptsAtMs_ = next;
      }
    }
  }
}

void Guardian::watchOutput(const OutputStream& stream, uint64_t tag) {
  control(outputs_, EPOLL_CTL_ADD, stream.fd(), EPOLLIN, tag);  // closing the pipe takes it out again
}

void Guardian::writeInputs() {
  for (Rank& rank : ranks_) {
    if (rank.input.waiting()) rank.input.write(channel_);
  }
}

// Each event is reported once (EPOLLONESHOT): the connection of a rank whose last bytes the agent still processes stays
// unread.
void Guardian::watchPmi(size_t index, int operation) {
  const PmiConnection& pmi = ranks_[index].pmi;
  const uint32_t events = pmi.events();
  if (events != 0) control(everything_, operation, pmi.fd(), events | EPOLLONESHOT, kPmi + index);
}

void Guardian::watchStacks() { control(everything_, EPOLL_CTL_ADD, stacks_.fd(), EPOLLIN, kStacks); }

void Guardian::servePmi(size_t index) {
  PmiConnection& pmi = ranks_[index].pmi;
  pmi.serve(channel_);
  watchPmi(index, EPOLL_CTL_MOD);
}

// Reaps exited ranks, and orphans that were reparented to us. False: no child is left, alive or dead.
bool Guardian::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return pid == 0;
    if (WIFSTOPPED(status)) continue;  // it is being read (stack_reading.h)
    for (Rank& rank : ranks_) {
      if (rank.pid == pid && rank.state == Rank::State::running) died(rank, status);
    }
  }
}

void Guardian::died(Rank& rank, int waitStatus) {
  rank.state = Rank::State::dead;
  rank.waitStatus = waitStatus;
  rank.endedAt = realtimeNs();
  rank.output.writersDied();
  rank.error.writersDied();
  rank.input.close(channel_);
  rank.pmi.finish(channel_);
}

// Reports the dead whose last words are sent.
void Guardian::settle() {
  for (Rank& rank : ranks_) {
    if (rank.state == Rank::State::dead) report(rank);
  }
}

void Guardian::sweep() {
  if (sweepsAtMs_ == 0 || monotonicMs() < sweepsAtMs_) return;
  sweepsAtMs_ = 0;
  removeLeftovers(runtimeDirectory_.c_str());
}

// Until something is due, in ms; -1: nothing is.
int Guardian::timeout() const {
  uint64_t end = leaseMs_ == 0 ? UINT64_MAX : receivedAtMs_ + leaseMs_;
  if (promptsAtMs_ != 0 && promptsAtMs_ < end) end = promptsAtMs_;
  if (sweepsAtMs_ != 0 && sweepsAtMs_ < end) end = sweepsAtMs_;
  if (end == UINT64_MAX) return -1;
  const uint64_t now = monotonicMs();
  const uint64_t left = end > now ? end - now + 1 : 0;
  return left > INT_MAX ? INT_MAX : static_cast<int>(left);
}

bool Guardian::leaseRanOut() {
  const uint64_t now = monotonicMs();
  if (channel_.received() != receivedBytes_) {
    receivedBytes_ = channel_.received();
    receivedAtMs_ = now;
  }
  if (leaseMs_ == 0 || now < receivedAtMs_ + leaseMs_) return false;
  // One more look: perhaps it was we who slept (SIGSTOP, a frozen machine), and the agent's word waits in the socket.
  pollfd socket = {.fd = socket_, .events = POLLIN, .revents = 0};
  if (poll(&socket, 1, 0) > 0) return false;
  const auto silentMs = static_cast<uint32_t>(now - receivedAtMs_);
  dprintf(2, "ncclrun-guardian: no word from the agent for %u ms; ending the ranks\n", silentMs);
  // Before the ends of the ranks: an agent that was only stopped goes on, and would blame them.
  channel_.send(FrameKind::lease, 0, 0, &silentMs, sizeof silentMs);
  return true;
}

}  // namespace ncclrun::guardian
