#pragma once
#include <sys/types.h>

#include <cstdint>

#include "guardian/input.h"
#include "guardian/output.h"
#include "guardian/pmi.h"
#include "guardian/spawn.h"

namespace ncclrun::guardian {

// A rank that was started.
//
//   running ──SIGCHLD──▶ dead ──what it wrote is sent──▶ reported
struct Rank {
  enum class State { running, dead, reported };

  Rank(uint32_t number, bool interactive, const Spawned& spawned)
      : number(number),
        interactive(interactive),
        pid(spawned.pid),
        output(spawned.standardOutput, number, false),
        error(spawned.standardError, number, true),
        input(spawned.standardInput, number),
        pmi(spawned.pmi, number) {}

  uint32_t number;
  bool interactive;  // the beginning of a line does not wait for its end for long
  pid_t pid;         // of its session and process group too; another's once the rank is dead
  State state = State::running;
  int waitStatus = 0;
  uint64_t endedAt = 0;  // ns since 1970
  OutputStream output;
  OutputStream error;
  InputStream input;
  PmiConnection pmi;
  bool inputWatched = false;
};

}  // namespace ncclrun::guardian
