// The table of what can be measured: one entry per collective.
#pragma once
#include <cstddef>
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
  int root;
  ncclComm_t comm;
  cudaStream_t stream;
};

struct Collective {
  const char* name;
  bool reduces;                                  // the operator matters
  int root;                                      // -1: has none
  size_t (*sendCount)(size_t count, int ranks);  // elements of one rank, for the call's count
  size_t (*receiveCount)(size_t count, int ranks);
  double (*busFactor)(int ranks);  // bus bandwidth per algorithm bandwidth, as nccl-tests defines it
  ncclResult_t (*run)(const Call& call);
  // What `rank` must find in its receive buffer of `receiveCount` elements, repeated.
  std::vector<std::byte> (*expected)(const DataRule& rule, int rank, size_t receiveCount);
};

// Throws std::invalid_argument for a name that does not exist.
const Collective& collectiveNamed(const std::string& name);
