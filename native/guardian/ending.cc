// The end of the job on this host: no process of it survives us, whatever the reason.
#include <poll.h>
#include <sys/socket.h>

#include <cstdio>

#include "guardian/clock.h"
#include "guardian/guardian.h"
#include "guardian/processes.h"

namespace ncclrun::guardian {
namespace {

// A process may be stuck in the kernel, or belong to another user since it started.
constexpr uint64_t kKillMs = 10'000;

// Closing a Unix socket with unread bytes would tell the agent ECONNRESET, perhaps before it has read our last frames.
void closeGently(int socket) {
  shutdown(socket, SHUT_RDWR);
  char rest[4096];
  while (recv(socket, rest, sizeof rest, MSG_DONTWAIT) > 0) {
  }
}

}  // namespace

Outcome Guardian::finish(Outcome why) {
  ordered_ = true;  // nothing starts any more
  const bool noneLeft = killAll();
  for (Rank& rank : ranks_) {
    rank.output.writersDied();
    rank.error.writersDied();
  }
  if (!runtimeDirectory_.empty()) removeDirectory(runtimeDirectory_.c_str());
  // Who asked us to end gets everything that the ranks wrote; an agent that is gone or mad gets what its socket takes.
  const bool patient = why == Outcome::ended || why == Outcome::stopped;
  if (agentThere_ && !sayGoodbye(noneLeft, patient) && why == Outcome::ended) why = Outcome::agentGone;
  closeGently(socket_);
  return noneLeft ? why : Outcome::survivors;
}

bool Guardian::killAll() {
  const uint64_t deadline = monotonicMs() + kKillMs;
  while (reap()) {
    killDescendants();  // what they forked meanwhile comes to us with their death, and the next turn ends it
    if (monotonicMs() > deadline) {
      dprintf(2,
              "ncclrun-guardian: processes of this job do not die of SIGKILL: stuck in the kernel, or another user's "
              "by now\n");
      return false;
    }
    pollfd death = {.fd = signals_, .events = POLLIN, .revents = 0};
    poll(&death, 1, 20);
    takeSignals();
  }
  return true;
}

// True when all that the ranks wrote is on its way.
bool Guardian::closeOutputs() {
  settle();
  bool done = true;
  for (Rank& rank : ranks_) {
    const bool settled = rank.state == Rank::State::reported && rank.output.settle(channel_, credit_) &&
                         rank.error.settle(channel_, credit_);
    done = done && settled;
    if (!settled) continue;
    rank.output.finish(channel_, credit_);
    rank.error.finish(channel_, credit_);
  }
  return done;
}

// Sends the rest, if need be as slowly as the agent gives credit. False: the agent went away meanwhile, or we were not
// patient enough.
bool Guardian::sayGoodbye(bool ended, bool patient) {
  bool said = false;
  promptsAtMs_ = 0;  // the outputs are closed with all they hold
  for (;;) {
    if (!said && closeOutputs()) {
      if (ended) channel_.send(FrameKind::ended, 0, 0);
      said = true;
    }
    if (!channel_.flush()) return false;
    if (said && channel_.queued() == 0) return true;
    if (!patient) return false;
    const short events = channel_.queued() > 0 ? POLLIN | POLLOUT : POLLIN;
    pollfd socket = {.fd = socket_, .events = events, .revents = 0};
    poll(&socket, 1, timeout());
    if ((socket.revents & ~POLLOUT) != 0 && (!channel_.receive() || !handleFrames())) return false;
    if (leaseRanOut()) return false;
  }
}

}  // namespace ncclrun::guardian
