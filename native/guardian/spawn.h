// Starts one rank: own session, own process group, binding, directory, streams, program.
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "guardian/spawn_order.h"

namespace ncclrun::guardian {

// The twin of PMI_DESCRIPTOR in control/messages/guardian.ts.
inline constexpr int kPmiDescriptor = 29;

// The twin of SpawnStep in control/messages/guardian.ts.
enum class SpawnStep : uint32_t { fork = 1, session = 2, binding = 3, directory = 4, streams = 5, exec = 6 };

struct Spawned {
  pid_t pid = -1;  // -1: it failed, see error and step
  int error = 0;   // errno
  SpawnStep step = SpawnStep::fork;
  int standardInput = -1;  // our ends of its pipes, close on exec; -1: none
  int standardOutput = -1;
  int standardError = -1;  // also -1: it is standardOutput's pipe
  int pmi = -1;
};

class Spawner {
 public:
  // `ranks` is how many will be started: many get smaller pipes, and descriptors for all are allowed for.
  explicit Spawner(size_t ranks);
  ~Spawner();
  Spawner(const Spawner&) = delete;

  // Returns once the program runs, or with the exact step and errno. The ranks have our environment with the order's
  // laid over it.
  Spawned spawn(const RankOrder& order);

 private:
  int nullDevice_ = -1;
  int pipeBytes_ = 0;
  char* stack_ = nullptr;
  rlimit ourFiles_ = {};  // the ranks get back what we raised for ourselves
};

}  // namespace ncclrun::guardian
