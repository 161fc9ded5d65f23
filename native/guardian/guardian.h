// The guardian's one loop: frames from the agent, output and deaths of the ranks, the lease.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "guardian/channel.h"
#include "guardian/output.h"
#include "guardian/rank.h"

namespace ncclrun::guardian {

// Exit status of the guardian, and why it ended the ranks.
enum class Outcome : int {
  ended = 0,      // the agent asked for it
  agentGone = 1,  // the socket's other end is closed
  garbage = 2,    // bytes that are no frames of ours, or a frame that makes no sense
  silence = 3,    // the lease ran out
  survivors = 4,  // a process could not be killed
};

class Guardian {
 public:
  // `socket` leads to the agent; `signals` is a signalfd for SIGCHLD; all signals are blocked.
  Guardian(int socket, int signals, const char* runtimeDirectory);
  // Returns when no process of the job is left.
  Outcome run();

 private:
  // Frames (commands.cc). False: garbage.
  bool handleFrames();
  bool handle(const Frame& frame);
  bool spawn(const Frame& frame);
  void signalRanks(uint32_t subject, int number);
  void feed(const Frame& frame);

  // Output and deaths.
  bool mayReadOutput() const;
  void readOutputs();
  void readOutput(uint64_t tag);
  void watchOutput(const OutputStream& stream, uint64_t tag);
  void sendPrompts();
  void sweep();
  void writeInputs();
  bool reap();
  void settle();
  void report(Rank& rank);

  // The loop.
  void watch();
  void takeSignals();
  bool leaseRanOut();
  int timeout() const;

  // The end (ending.cc).
  Outcome finish(Outcome why);
  bool killAll();
  bool closeOutputs();
  bool sayGoodbye(bool ended, bool patient);

  Channel channel_;
  int socket_;
  int signals_;
  int everything_;  // epoll: socket, signals, outputs_, inputs
  int outputs_;     // epoll: all output pipes, so that one call stops or resumes the reading of all
  uint32_t socketEvents_ = 0;
  bool outputsWatched_ = true;
  unsigned turn_ = 0;

  Credit credit_;
  std::vector<Rank> ranks_;
  bool ordered_ = false;
  bool agentThere_ = true;
  bool ending_ = false;
  std::string runtimeDirectory_;
  uint64_t promptsAtMs_ = 0;  // when a begun line of an interactive rank is due; 0: there is none
  uint64_t sweepsAtMs_ = 0;   // when we look for leftovers of dead jobs; 0: not yet, or done
  uint64_t leaseMs_ = 0;
  uint64_t heardBytes_ = 0;
  uint64_t heardAtMs_ = 0;
};

}  // namespace ncclrun::guardian
