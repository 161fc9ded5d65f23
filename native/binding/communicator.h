// CommHandle of worker/engine/native.ts: a communicator, the stream of its operations, and their promises.
#pragma once
#include <napi.h>

#include <future>
#include <memory>
#include <vector>

#include "binding/completions.h"
#include "binding/settler.h"
#include "ncclrun.h"

namespace ncclrun::binding {

//   joining ──commReady──▶ waiting ──its promise──▶ open ──commClose──▶ closed (closing until the future is there)
//      └─────────abort────────┴─────────abort────────┴──▶ aborted ──commClose──▶ closed
struct Comm {
  static constexpr napi_type_tag kTag = {0x6e63636c72756e03, 0x436f6d6d00000001};
  static constexpr const char* kName = "a communicator";
  enum class State { joining, waiting, open, aborted, closed };

  ncclComm_t comm = nullptr;
  ncclrunStream_t stream = nullptr;
  size_t size = 0;
  int gpu = -1;  // -1: on the host device
  State state = State::open;
  size_t underWay = 0;      // promises
  bool queued = false;      // an operation on a device stream has no promise yet
  uint64_t stop = 0;        // Settler::forget
  uint64_t watcher = 0;     // Settler::wake, for the completions
  uint64_t gone = 0;        // Settler::wake, once it was closed because it was collected
  Completions completions;  // of operations
  bool holds = false;       // keeps the event loop alive, because operations are in progress

  std::shared_future<void> closing;

  cudaStream_t queue() const { return reinterpret_cast<cudaStream_t>(stream); }
  // The environment goes: ends what is queued. Afterwards the engine touches no buffer of ours.
  void stopNow();
};

// Throws NativeError unless `result` is success.
void check(Napi::Env env, ncclResult_t result, ncclComm_t comm);

// Throws if it is none, or not open.
std::shared_ptr<Comm> openComm(const Napi::Value& value);
// The same for an operation, without the search for a type tag, which takes as long as the operation.
Comm& openOperand(const Napi::Value& value);

// A promise that counts as under way until it is settled.
std::shared_ptr<Pending> pendingOf(Napi::Env env, const std::shared_ptr<Comm>& comm);

}  // namespace ncclrun::binding
