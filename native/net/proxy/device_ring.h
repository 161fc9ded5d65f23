// A ring of slots that kernels fill or empty, as the proxy sees it: the kernels' counters, modulo 2^32, in memory of
// the host, and slots there or, with GPUDirect, in the GPU's memory (plan/launch_format.h).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "datapath/step_call.h"
#include "net/proxy/device_lines.h"
#include "plan/launch_format.h"
#include "plan/segment_format.h"

namespace ncclrun {

struct DeviceRing {
  uint64_t* posts;      // sender: what the kernel says of each slot (Region::posts)
  uint32_t* tail;       // receiver: steps posted by the proxy
  uint32_t* head;       // steps freed: by the proxy of a sender, by the kernel of a receiver
  std::byte* slots;     // of the first one, the header in front of its payload; kNetHeaderBytes hold it
  size_t stride;        // bytes from one slot to the next
  size_t bytes;         // of all slots
  std::byte* lines;     // of the first slot of protocol LL; null: there are none
  uint32_t lineStride;  // bytes from one of these to the next

  // The slots lie in GPU memory, which the proxy does not touch: kernels write the headers, and there are no lines.
  struct GpuMemory {
    int dmaBuf;       // descriptor; -1: there is none
    uint64_t offset;  // of `slots` in it
    bool flushes;     // what is received has to be flushed before kernels read it
  };
  std::optional<GpuMemory> gpu = {};

  uint32_t packed = 0;   // sender: lines of the next step that are in its slot
  uint32_t llSlots = 0;  // sender: bit by slot; set: its step is one of protocol LL

  // The kernel has done something since. Any thread.
  bool hasNews(const Connection& ring, bool sends) const {
    if (sends) return postOf(uint32_t(ring.tail.load(std::memory_order_relaxed)), std::memory_order_relaxed) != 0;
    return std::atomic_ref(*head).load(std::memory_order_relaxed) !=
           uint32_t(ring.head.load(std::memory_order_relaxed));
  }
  // Brings what the kernel has done since into `ring`.
  void fetch(Connection& ring, bool sends, uint32_t steps) {
    if (sends) return fetchPosts(ring, steps);
    const uint64_t before = ring.head.load(std::memory_order_relaxed);
    const uint32_t more = std::atomic_ref(*head).load(std::memory_order_acquire) - uint32_t(before);
    if (more != 0) ring.head.store(before + more, std::memory_order_seq_cst);
  }
  // Tells the kernel what the proxy has done since.
  void store(const Connection& ring, bool sends) const {
    const auto now = uint32_t((sends ? ring.head : ring.tail).load(std::memory_order_relaxed));
    const std::atomic_ref<uint32_t> counter(*(sends ? head : tail));
    if (counter.load(std::memory_order_relaxed) != now) counter.store(now, std::memory_order_release);
  }

  bool isLL(uint64_t step, uint32_t steps) const { return (llSlots >> step % steps & 1) != 0; }
  // Receiver: the most bytes of a step of protocol LL.
  uint32_t maxLLBytes() const { return lines == nullptr ? 0 : lineStride / kLineBytes * kLineDataBytes; }
  // Receiver: writes lines of what has arrived in the step's slot.
  void expand(uint64_t step, uint32_t steps, uint32_t payload) const {
    const uint32_t all = cuda::isRenewed(uint32_t(step), steps) ? lineStride / kLineBytes : 0;
    expandLines(payloadOf(step, steps), payload, uint32_t(step) + 1, all, lineOf(step, steps));
  }
  // Fills the lines beside a step of protocol Simple once in a while, so that no flag gets as old as the counter's
  // period.
  void renew(uint64_t step, uint32_t steps) const {
    if (lines == nullptr || !cuda::isRenewed(uint32_t(step), steps)) return;
    expandLines(nullptr, 0, uint32_t(step) + 1, lineStride / kLineBytes, lineOf(step, steps));
  }

 private:
  std::byte* payloadOf(uint64_t step, uint32_t steps) const {
    return slots + step % steps * stride + cuda::kNetMessageHeaderBytes;
  }
  std::byte* lineOf(uint64_t step, uint32_t steps) const { return lines + step % steps * lineStride; }
  // What the kernel says of the step; 0: nothing yet.
  uint64_t postOf(uint32_t step, std::memory_order order) const {
    const uint64_t post = std::atomic_ref(posts[step % cuda::kMaxNetSteps]).load(order);
    return uint32_t(post >> 32) == step + 1 ? post : 0;
  }
  // A step of protocol LL is there when all of its lines are; then its payload lies in the slot.
  void fetchPosts(Connection& ring, uint32_t steps) {
    const uint64_t before = ring.tail.load(std::memory_order_relaxed);
    uint64_t step = before;
    for (; step != before + steps; step++) {
      const uint64_t post = postOf(uint32_t(step), std::memory_order_acquire);
      if (post == 0) break;
      const bool ll = (post & cuda::kNetPostIsLL) != 0;
      const uint32_t payload = uint32_t(post) & ~cuda::kNetPostIsLL;
      if (ll) {
        packed = packLines(lineOf(step, steps), uint32_t(step) + 1, payload, packed, payloadOf(step, steps));
        if (packed != linesOf(payload)) break;
        packed = 0;
      } else {
        renew(step, steps);
      }
      const uint32_t bit = 1u << step % steps;
      llSlots = ll ? llSlots | bit : llSlots & ~bit;
      ring.stepBytes[step % steps].store(payload, std::memory_order_relaxed);
    }
    if (step != before) ring.tail.store(step, std::memory_order_seq_cst);
  }
};

// Whose kernels they are.
class DeviceRings {
 public:
  // Of the connection with `peer` on a channel as deviceChannel() numbers it.
  virtual DeviceRing ringOf(uint32_t peer, uint32_t channel, bool sends) = 0;
  // Of what goes to a network that reduces, or comes from it. inHost: its slots lie in memory of the host, from now on;
  // before any kernel uses them.
  virtual DeviceRing ringOfGroup(uint32_t channel, bool sends, bool inHost) = 0;
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
