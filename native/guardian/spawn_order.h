// The SpawnOrder of control/messages/guardian.ts, read from bytes that nobody vouches for.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ncclrun::guardian {

struct RankOrder {
  uint32_t rank = 0;
  bool stdinPipe = false;
  bool interactive = false;
  bool mergeStderr = false;           // stderr is stdout's pipe
  bool pmi = false;                   // kPmiDescriptor is a socket that leads to the agent
  const char* workingDirectory = "";  // empty: the guardian's own
  std::vector<char*> arguments;       // program first, a null pointer last
  std::vector<char*> environment;     // "NAME=value", laid over the guardian's own, later over earlier
  std::vector<uint32_t> cpus;         // empty: no binding
};

struct SpawnOrder {
  uint32_t leaseMs = 0;
  uint64_t outputCredit = 0;
  const char* runtimeDirectory = "";  // empty: none
  std::vector<RankOrder> ranks;
  std::unique_ptr<char[]> strings;  // what the pointers above point into
};

inline constexpr uint32_t kMaxCpu = 65535;

// Reads a whole payload. Null when it is a SpawnOrder; else what is wrong with it, static storage, and *errorOffset is
// where.
const char* parseSpawnOrder(std::span<const char> payload, SpawnOrder& out, size_t* errorOffset);

}  // namespace ncclrun::guardian
