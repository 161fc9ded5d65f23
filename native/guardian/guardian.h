// The guardian's one loop: frames from the agent, output and exits of the ranks, the lease.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "guardian/channel.h"
#include "guardian/output.h"
#include "guardian/rank.h"
#include "guardian/stack_reading.h"
#include "guardian/warden.h"

namespace ncclrun::guardian {

inline constexpr int kAgentSocket = 3;

// Exit status of the guardian, and why it ended the ranks.
enum class Outcome : int {
  ended = 0,       // the agent asked for it
  agentGone = 1,   // the socket's other end is closed
  garbage = 2,     // bytes that are no frames of ours, or a frame that makes no sense
  silence = 3,     // the lease ran out
  wardenGone = 4,  // its warden was killed
};

class Guardian {
 public:
  // `socket` leads to the agent, `warden` to the warden (-1: there is none); `signals` becomes readable with SIGCHLD;
  // all other signals are blocked. `leaseMs` holds until the order to spawn brings another; 0: none.
  Guardian(int socket, int warden, int signals, const Ward& ward, uint32_t leaseMs);
  // Returns when no process of the job is left, or none that can be ended.
  Outcome run();

 private:
  // Frames (commands.cc). False: garbage.
  bool handleFrames();
  bool handle(const Frame& frame);
  bool spawn(const Frame& frame);
  void signalRanks(uint32_t subject, int number);
  void feed(const Frame& frame);
  void answerPmi(const Frame& frame);
  bool readStacks(const Frame& frame);

  // Output and exits.
  bool mayReadOutput() const;
  void readOutputs();
  void readOutput(uint64_t tag);
  void watchOutput(const OutputStream& stream, uint64_t tag);
  void sendPrompts();
  void sweep();
  void writeInputs();
  void servePmi(size_t index);
  void watchPmi(size_t index, int operation);
  void watchStacks();
  bool reap();
  void died(Rank& rank, int waitStatus);
  void settle();
  void report(Rank& rank);

  // The loop.
  void watch();
  void takeSignals();
  bool leaseRanOut();
  int timeout() const;

  // The end (ending.cc).
  Outcome finish(Outcome why);
  void killAll();
  void removeRuntimeDirectory();
  void stayInTouch(int milliseconds);
  void notice(const std::string& message);
  bool closeOutputs();
  bool sendGoodbye(bool awaitsCredit);

  Channel channel_;
  int socket_;
  WardenLink warden_;
  int signals_;
  int everything_;  // epoll: socket, warden, signals, outputs_, inputs, PMI connections
  int outputs_;     // epoll: all output pipes, so that one call stops or resumes the reading of all
  uint32_t socketEvents_ = 0;
  bool outputsWatched_ = true;
  unsigned firstReady_ = 0;

  Credit credit_;
  StackReading stacks_;
  std::vector<Rank> ranks_;
  bool ordered_ = false;
  bool unwarded_ = false;  // our warden was killed: the ranks' ends are our doing, and the agent hears of ours alone
  bool agentThere_ = true;
  bool ending_ = false;
  std::string runtimeDirectory_;
  pid_t agent_;               // to be ended if it is stopped and no warden is there to do it; 0: it is not ours to end
  uint64_t promptsAtMs_ = 0;  // when a begun line of an interactive rank is due; 0: there is none
  uint64_t sweepsAtMs_ = 0;   // when we look for leftovers of dead jobs; 0: not yet, or done
  uint64_t leaseMs_ = 0;
  uint64_t receivedBytes_ = 0;
  uint64_t receivedAtMs_ = 0;
};

}  // namespace ncclrun::guardian
