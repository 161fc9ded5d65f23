// The end of the job on this host: no process of it survives us, whatever the reason, but those that nobody can end.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "guardian/clock.h"
#include "guardian/guardian.h"
#include "guardian/processes.h"
#include "guardian/removal.h"

namespace ncclrun::guardian {
namespace {

// Survivors named one by one.
constexpr size_t kMaxNamed = 8;
// While the guardian waits for credit, it sends the warden a pulse this often.
constexpr int kGoodbyeTickMs = 250;

// How long an agent may take to see that we have said all.
constexpr uint64_t kGoodbyeMs = 1000;

// Our last frames must be read first: an agent that still writes (credit for output, mostly) when we are gone gets
// EPIPE or ECONNRESET, and its Node then drops what it has not read. So we say that we are done and listen until it
// hangs up.
void closeGently(int socket) {
  shutdown(socket, SHUT_WR);
  const uint64_t deadline = monotonicMs() + kGoodbyeMs;
  char rest[4096];
  for (uint64_t now = monotonicMs(); now < deadline; now = monotonicMs()) {
    pollfd word = {.fd = socket, .events = POLLIN, .revents = 0};
    if (poll(&word, 1, int(deadline - now)) <= 0 || recv(socket, rest, sizeof rest, MSG_DONTWAIT) <= 0) return;
  }
}

std::string describe(const Survivor& survivor) {
  const bool another = survivor.user != geteuid();
  const std::string user = survivor.user == 0 ? "root" : "user id " + std::to_string(survivor.user);
  const char* why = another ? "it belongs to another user; end it there as that user or as root"
                            : "SIGKILL is pending; it ends when it is no longer stuck in the kernel or frozen";
  return "could not end process " + std::to_string(survivor.pid) + " (" + survivor.command + ", " + user + ", state " +
         survivor.state + "): " + why;
}

}  // namespace

Outcome Guardian::finish(Outcome why) {
  ordered_ = true;  // nothing starts any more
  unwarded_ = why == Outcome::wardenGone;
  killAll();
  for (Rank& rank : ranks_) {
    rank.output.writersDied();
    rank.error.writersDied();
  }
  removeRuntimeDirectory();
  // Who asked us to end gets everything that the ranks wrote; an agent that is gone or mad gets what its socket takes.
  const bool awaitsCredit = why == Outcome::ended;
  if (agentThere_ && !sendGoodbye(awaitsCredit) && why == Outcome::ended) why = Outcome::agentGone;
  closeGently(socket_);
  warden_.wake();
  if (warden_.isLost()) endStoppedAgent(agent_, static_cast<uint32_t>(leaseMs_));
  return why;
}

void Guardian::killAll() {
  Ending ending(monotonicMs());
  while (reap()) {
    // What they forked meanwhile comes to us with their death, and the next look ends it.
    if (!ending.over(monotonicMs(), killDescendants())) {
      stayInTouch(kEndingTickMs);
      continue;
    }
    const std::vector<Survivor> survivors = survivingDescendants();
    for (size_t i = 0; i < survivors.size() && i < kMaxNamed; ++i) notice(describe(survivors[i]));
    if (survivors.size() > kMaxNamed) {
      notice("could not end " + std::to_string(survivors.size() - kMaxNamed) + " more processes");
    }
    // The job ends without them: a rank among them counts as what it is about to be.
    for (Rank& rank : ranks_) {
      if (rank.state == Rank::State::running) died(rank, SIGKILL);
    }
    return;
  }
}

void Guardian::removeRuntimeDirectory() {
  if (runtimeDirectory_.empty()) return;
  Removal removal(runtimeDirectory_.c_str());
  const uint64_t deadline = monotonicMs() + kRemovalMs;
  while (removal.step()) {
    stayInTouch(0);
    if (monotonicMs() < deadline) continue;
    notice("could not remove all of " + runtimeDirectory_ + " in " + std::to_string(kRemovalMs / 1000) +
           " s: it holds too much; remove the rest by hand");
    return;
  }
  const std::string error = removal.error();
  if (!error.empty()) notice("could not remove " + runtimeDirectory_ + ": " + error);
}

// The end takes its time: the agent still gets answers, and the warden gets pulses.
void Guardian::stayInTouch(int milliseconds) {
  warden_.pulse(static_cast<uint32_t>(leaseMs_));
  pollfd ready[2] = {{.fd = signals_, .events = POLLIN, .revents = 0},
                     {.fd = agentThere_ ? socket_ : -1, .events = POLLIN, .revents = 0}};
  poll(ready, 2, milliseconds);
  takeSignals();
  if (agentThere_ && ready[1].revents != 0) agentThere_ = channel_.receive() && handleFrames();
  settle();
  if (agentThere_) agentThere_ = channel_.flush();
}

void Guardian::notice(const std::string& message) {
  channel_.send(FrameKind::notice, 0, 0, message.data(), message.size());
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

// Sends the rest; `awaitsCredit`: as slowly as the agent grants credit. False: the agent went away meanwhile, or
// something was left.
bool Guardian::sendGoodbye(bool awaitsCredit) {
  bool isClosed = false;
  promptsAtMs_ = 0;  // the outputs are closed with all they hold
  for (;;) {
    if (!isClosed && closeOutputs()) {
      if (!unwarded_) channel_.send(FrameKind::ended, 0, 0);
      isClosed = true;
    }
    if (!channel_.flush()) return false;
    if (isClosed && channel_.queued() == 0) return true;
    if (!awaitsCredit) return false;
    const short events = channel_.queued() > 0 ? POLLIN | POLLOUT : POLLIN;
    pollfd socket = {.fd = socket_, .events = events, .revents = 0};
    warden_.pulse(static_cast<uint32_t>(leaseMs_));
    const int due = timeout();
    poll(&socket, 1, due < 0 || due > kGoodbyeTickMs ? kGoodbyeTickMs : due);
    if ((socket.revents & ~POLLOUT) != 0 && (!channel_.receive() || !handleFrames())) return false;
    if (leaseRanOut()) return false;
  }
}

}  // namespace ncclrun::guardian
