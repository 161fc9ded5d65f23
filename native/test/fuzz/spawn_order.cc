#include "guardian/spawn_order.h"

#include <cstdlib>
#include <cstring>

using ncclrun::guardian::RankOrder;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ncclrun::guardian::SpawnOrder order;
  size_t offset = 0;
  const char* problem = parseSpawnOrder({reinterpret_cast<const char*>(data), size}, order, &offset);
  if (offset > size) abort();
  if (problem != nullptr) return 0;
  // What was accepted is whole: every string can be read to its end.
  size_t bytes = strlen(order.runtimeDirectory);
  for (const RankOrder& rank : order.ranks) {
    bytes += strlen(rank.workingDirectory);
    if (rank.arguments.size() < 2 || rank.arguments.back() != nullptr) abort();
    for (size_t i = 0; i + 1 < rank.arguments.size(); ++i) bytes += strlen(rank.arguments[i]);
    for (const char* variable : rank.environment) bytes += strlen(variable);
  }
  if (bytes > size) abort();
  return 0;
}
