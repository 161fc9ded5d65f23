// One rank of the measurement: the communicator of all ranks, a stream, and calls that throw the engine's sentence.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "nccl.h"
#include "ncclrun.h"

class EngineError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws EngineError unless `result` is ncclSuccess.
void must(ncclResult_t result);

// How many ranks the job has.
int ranksOfJob();

class Session {
 public:
  // `device`: host; cuda, the GPU with our number on this host; or auto, which is cuda if there are few enough ranks
  // and a GPU for each. Throws std::invalid_argument for another word.
  explicit Session(const std::string& device);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int hosts() const { return hosts_; }
  bool isGpu() const { return isGpu_; }
  const char* device() const { return isGpu_ ? "cuda" : "host"; }
  ncclComm_t comm() const { return comm_; }
  cudaStream_t stream() const { return stream_; }

  void synchronize();
  void barrier();
  // Between memory of the device and of the host, and the clearing of what is the device's. Both have ended on return.
  void copy(void* to, const void* from, size_t bytes);
  void clear(void* memory, size_t bytes);
  // The sum over all ranks.
  double sum(double value);
  int64_t sum(int64_t value);

 private:
  void join();
  void sumInPlace(void* value, ncclDataType_t type);

  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  void* scalar_ = nullptr;  // 8 bytes on the GPU
  bool isGpu_ = false;
  int rank_ = 0;
  int ranks_ = 0;
  int hosts_ = 0;
};
