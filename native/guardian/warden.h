// The warden is the guardian's parent and does nothing but watch it:
//
//   agent ──► warden ──► guardian ──► ranks
//
// Each of the three ends the ranks when another one dies or falls silent. So the job ends on this host although two of
// launcher, agent and guardian are killed or stopped at once. Descendants of ranks cannot escape: warden and guardian
// are subreapers.
#pragma once
#include <sys/types.h>

#include <cstdint>

namespace ncclrun::guardian {

struct Ward {
  const char* runtimeDirectory;  // removed with the guardian; empty: none
  pid_t agent;                   // ended when it is silent for longer than the lease; 0: it is not ours to end
  uint32_t leaseMs;              // until the guardian has said another one; 0: none
};

// Ends the agent if somebody has stopped it (SIGSTOP) and it stays so for longer than the lease; waits no longer than
// that. For whoever is left of warden and guardian.
void endStoppedAgent(pid_t agent, uint32_t leaseMs);

// The guardian's side of the connection to its warden.
class WardenLink {
 public:
  // Of the parent of this process; `fd` is -1 where no warden could be started.
  explicit WardenLink(int fd);

  // Tells the warden that we live, and that it must hear of us again within `leaseMs`; 0: whenever we like.
  void pulse(uint32_t leaseMs);

  // Call it at the end: a warden that somebody has stopped would stay for ever.
  void wake() const;

  int fd() const { return fd_; }
  // Call it when the descriptor is ready: the warden never writes.
  void lost();
  bool isLost() const { return fd_ < 0; }

 private:
  int fd_;
  pid_t warden_;
  uint32_t sentLeaseMs_ = 0;
  uint64_t sentAtMs_ = 0;
};

// Forks the calling process. Returns in the child, which is the guardian, its end of the connection; the parent becomes
// the warden and never returns: it exits as the guardian does. `signals` is a signalfd for SIGCHLD. Returns -1 in the
// calling process if no process could be started.
int becomeGuardianOfWarden(const Ward& ward, int signals, char* processName);

}  // namespace ncclrun::guardian
