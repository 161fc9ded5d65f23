// What NCCL_DEBUG asks for: lines of NCCL's form, host:process:thread NCCL LEVEL sentence, on stderr or in the file
// that NCCL_DEBUG_FILE names (%h: the host's name, %p: the process). NCCL_DEBUG_SUBSYS chooses what INFO is about;
// without it INFO is about everything. The variables are read at the first line, and again after resetDebug().
#pragma once
#include <cstdint>
#include <string>

namespace ncclrun {

// Each writes what those before it write.
enum class DebugLevel : uint8_t { none, version, warn, info, abort, trace };

// As NCCL_DEBUG_SUBSYS names them.
enum class Subsystem : uint8_t {
  init,
  coll,
  p2p,
  shm,
  net,
  graph,
  tuning,
  env,
  alloc,
  call,
  proxy,
  bootstrap,
  reg,
  destroy
};

bool debugs(DebugLevel level);

// WARN: what went wrong. The same sentence is written once in a row.
void logWarning(const std::string& sentence);
void logInfo(const std::string& sentence, Subsystem about = Subsystem::init);
// TRACE: a call of the program.
void traceCall(const std::string& call);
// The first time in this process: from VERSION on who we are, where it is rank 0's; from INFO on NCCL's variables and
// where they come from.
void logStartup(bool isFirstRank);

void resetDebug();

}  // namespace ncclrun
