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

// How long an agent may take to see that we have said all.
constexpr uint64_t kFarewellMs = 1000;

// Our last frames must be read first: an agent that still writes (credit for output, mostly) when we are gone gets
// EPIPE or ECONNRESET, and its Node then drops what it has not read. So we say that we are done and listen until it
// hangs up.
void closeGently(int socket) {
  shutdown(socket, SHUT_WR);
  const uint64_t deadline = monotonicMs() + kFarewellMs;
  char rest[4096];
  for (uint64_t now = monotonicMs(); now < deadline; now = monotonicMs()) {
    pollfd word = {.fd = socket, .events = POLLIN, .revents = 0};
    if (poll(&word, 1, int(deadline - now)) <= 0 || recv(socket, rest, sizeof rest, MSG_DONTWAIT) <= 0) return;
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
  const bool patient = why == Outcome::ended;
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
