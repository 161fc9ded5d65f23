// Finding and killing what descends from us. As child subreaper we inherit every orphan, whatever session or group it
// moved to.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ncclrun::guardian {

struct Killed {
  int found = 0;
  int refused = 0;  // another user's, who may not be signalled
};

// Sends SIGKILL to every descendant, at all levels.
Killed killDescendants();

// A process that SIGKILL does not end.
struct Survivor {
  pid_t pid;
  uid_t user;
  char state;  // of proc(5)'s stat: D in the kernel, S, T…
  std::string command;
};

// False if the process is gone, or a zombie.
bool readStatus(pid_t pid, Survivor& out);

// Every descendant that is no zombie.
std::vector<Survivor> survivingDescendants();

// Between two looks for descendants.
inline constexpr int kEndingTickMs = 20;

// How long descendants are given to die. Processes can be stuck in the kernel, be frozen, or belong to another user.
class Ending {
 public:
  explicit Ending(uint64_t nowMs) : beganMs_(nowMs), oursAtMs_(nowMs) {}

  // True when there is no hope any more, after a look that has found `killed`.
  bool over(uint64_t nowMs, const Killed& killed) {
    if (killed.refused < killed.found) oursAtMs_ = nowMs;
    return nowMs > beganMs_ + kMaxMs || nowMs > oursAtMs_ + kRefusedMs;
  }

 private:
  static constexpr uint64_t kMaxMs = 4000;
  static constexpr uint64_t kRefusedMs = 1000;  // with nobody left but those
  uint64_t beganMs_;
  uint64_t oursAtMs_;
};

}  // namespace ncclrun::guardian
