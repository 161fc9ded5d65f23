// The table of what can be measured: one entry per collective.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "elements.h"
#include "nccl.h"

struct Call {
  const void* send;
  void* receive;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int rank;
  int ranks;
  int root;
  ncclComm_t comm;
  cudaStream_t stream;
};

// How many times the call's count a rank's buffer has.
enum class Extent { once, perRank };

struct Collective {
  const char* name;
  bool reduces = false;  // the operator matters
  bool hasRoot = false;
  bool hasInPlace = true;
  Extent sends = Extent::once;
  Extent receives = Extent::once;
  bool onlyRootReceives = false;
  double (*busFactor)(int ranks);  // bus bandwidth per algorithm bandwidth, as nccl-tests defines it
  ncclResult_t (*run)(const Call& call);
  // The first elements of what `rank` must find in part `part` of its receive buffer.
  std::vector<std::byte> (*expected)(const DataRule& rule, int root, int rank, int part, size_t count);
};

// Throws std::invalid_argument for a name that does not exist.
const Collective& collectiveNamed(const std::string& name);
// As plans and ncclrunCommGetVariant number it (native/plan/plan_format.h).
uint32_t planNumber(const Collective& collective);
