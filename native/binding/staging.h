// Copies between arrays and a GPU that never wait for the stream in the call, as the driver's own of pageable memory
// do: by way of pinned pages, a piece at a time, by the thread on which the driver runs a stream's callbacks.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "ncclrun.h"

namespace ncclrun::binding {

// For what runs in order: one stream, or one graph. A graph may run again while its stream does something else, so it
// has pages of its own.
class Staging {
 public:
  Staging() = default;
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Pages that all GPUs reach. Once; not while a stream is captured.
  ncclResult_t allocate();
  // Queue a copy. What they add to `kept`, and this object, must stay until it has ended.
  ncclResult_t copyTo(char* gpuMemory, char* array, size_t bytes, cudaStream_t stream,
                      std::vector<std::shared_ptr<void>>& kept);
  ncclResult_t copyFrom(const char* gpuMemory, char* array, size_t bytes, cudaStream_t stream,
                        std::vector<std::shared_ptr<void>>& kept);

 private:
  // So small that pinning takes a fraction of a millisecond, so large that the callbacks hardly count.
  static constexpr size_t kBytes = size_t{1} << 20;

  struct Piece {
    char* to;
    const char* from;
    size_t bytes;
  };
  static void carry(void* piece);

  void* pages_ = nullptr;
};

}  // namespace ncclrun::binding
