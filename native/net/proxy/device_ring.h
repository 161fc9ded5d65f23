// A ring of slots that kernels fill or empty, as the proxy sees it: the kernels' counters, modulo 2^32, in memory of
// the host, and slots there or, with GPUDirect, in the GPU's memory (plan/launch_format.h).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "datapath/step_call.h"
#include "plan/launch_format.h"
#include "plan/segment_format.h"

namespace ncclrun {

struct DeviceRing {
  uint32_t* tail;       // steps posted: by the kernel of a sender, by the proxy of a receiver
  uint32_t* head;       // steps freed: the other way round
  uint32_t* stepBytes;  // sender: payload of each slot
  std::byte* slots;     // of the first one, the header in front of its payload; kNetHeaderBytes hold it
  size_t stride;        // bytes from one slot to the next
  size_t bytes;         // of all slots

  // The slots lie in GPU memory, which the proxy does not touch: kernels write the headers.
  struct GpuMemory {
    int dmaBuf;       // descriptor; -1: there is none
    uint64_t offset;  // of `slots` in it
    bool flushes;     // what is received has to be flushed before kernels read it
  };
  std::optional<GpuMemory> gpu = {};

  // The kernel has done something since. Any thread.
  bool hasNews(const Connection& ring, bool sends) const {
    const uint32_t now = std::atomic_ref(*(sends ? tail : head)).load(std::memory_order_relaxed);
    return now != uint32_t((sends ? ring.tail : ring.head).load(std::memory_order_relaxed));
  }
  // Brings what the kernel has done since into `ring`.
  void fetch(Connection& ring, bool sends, uint32_t steps) const {
    std::atomic<uint64_t>& counter = sends ? ring.tail : ring.head;
    const uint64_t before = counter.load(std::memory_order_relaxed);
    const uint32_t now = std::atomic_ref(*(sends ? tail : head)).load(std::memory_order_acquire);
    const uint32_t more = now - uint32_t(before);
    if (more == 0) return;
    for (uint64_t step = before; sends && step != before + more; step++) {
      const uint32_t payload = std::atomic_ref(stepBytes[step % cuda::kMaxNetSteps]).load(std::memory_order_relaxed);
      ring.stepBytes[step % steps].store(payload, std::memory_order_relaxed);
    }
    counter.store(before + more, std::memory_order_seq_cst);
  }
  // Tells the kernel what the proxy has done since.
  void store(const Connection& ring, bool sends) const {
    const auto now = uint32_t((sends ? ring.head : ring.tail).load(std::memory_order_relaxed));
    const std::atomic_ref<uint32_t> counter(*(sends ? head : tail));
    if (counter.load(std::memory_order_relaxed) != now) counter.store(now, std::memory_order_release);
  }
};

// Whose kernels they are.
class DeviceRings {
 public:
  // Of the connection with `peer` on a channel as deviceChannel() numbers it.
  virtual DeviceRing ringOf(uint32_t peer, uint32_t channel, bool sends) = 0;
  // Kernels may be at work. On the proxy's thread, often.
  virtual bool areActive() = 0;
  // A peer on another host is lost, or has left because calls differ. On the proxy's thread.
  virtual void onGone(uint32_t peer, const Status& why) = 0;
  // It has aborted the communicator. What it had sent before may be on its way, and be all that kernels want of it: the
  // agents say who waits in vain.
  virtual void onAborted(uint32_t peer, const Status& why) = 0;
  // It has called a collective. On the proxy's thread.
  virtual void onCall(uint32_t peer, const StepCall& call) = 0;
  // It has left in order. collectives: as Doorbell::left has it.
  virtual void onLeft(uint32_t peer, uint64_t collectives) = 0;

 protected:
  ~DeviceRings() = default;
};

// Kernels have a connection of two ranks on each channel, beside those of the rings.
inline constexpr uint32_t deviceChannel(uint32_t channel, uint32_t channels, bool isPair) {
  return isPair ? channels + channel : channel;
}

}  // namespace ncclrun
