// One rank of the measurement: the communicator of all ranks, a stream, and calls that throw the engine's sentence.
#pragma once
#include <stdexcept>
#include <string>

#include "nccl.h"
#include "ncclrun.h"

class EngineError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws EngineError unless `result` is ncclSuccess.
void must(ncclResult_t result);

class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int hosts() const { return hosts_; }
  ncclComm_t comm() const { return comm_; }
  cudaStream_t stream() const { return reinterpret_cast<cudaStream_t>(stream_); }

  void synchronize();
  void barrier();
  // The sum over all ranks.
  double sum(double value);
  int64_t sum(int64_t value);

 private:
  ncclComm_t comm_ = nullptr;
  ncclrunStream_t stream_ = nullptr;
  int rank_ = 0;
  int ranks_ = 0;
  int hosts_ = 0;
};
