// The threads of a block, and what they wait for.
#pragma once
#include <bitset>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fiber.h"
#include "simt/machine.h"

namespace simt {

inline constexpr uint32_t kMaxThreads = 1024;
inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kLanesOfLine = 8;

struct Thread;
class Block;

// What all threads of a grid have in common.
struct Grid {
  const char* kernel;
  uint32_t blocks;
  uint32_t threads;
  const std::function<void()>& body;
  uint64_t random;
  enum { apart, together, asItComes } lanes;

  uint32_t any(uint32_t below);
};

struct Thread {
  Block* block;
  uint32_t number;
  enum { ready, waiting, ended } state = ready;
  uint64_t notBefore = 0;   // turn of the block
  bool stoodAside = false;  // at the end of its latest turn
  std::unique_ptr<ncclrun::Fiber> fiber;
  // What it waits for in its warp, or has found there.
  enum { nothing, lanes, step, line } awaits = nothing;
  uint32_t mask = 0;
  bool says = false;
  const void* at = nullptr;  // in the program
  uint32_t steps = 0;        // how often it was looked at there since the lanes last met: rounds of a loop are apart
  bool inStep = false;       // with all lanes of its line, since the latest instruction
  uint64_t since = 0;
};

// A lane's part in an access to a line.
struct LinePart {
  uint64_t* address;
  uint64_t* a;
  uint64_t* b;
  bool stores;
};

class Block {
 public:
  Block(Grid& grid, uint32_t number);
  // Each thread that can go on does so once. False: none did anything but wait.
  bool turn();
  bool ended() const { return left_ == 0; }

  // Of the thread that runs.
  void standAside(Thread& thread, uint64_t turns, bool waits);
  void arrive(Thread& thread, uint32_t barrier, uint32_t threads, bool waits);
  bool syncLanes(Thread& thread, uint32_t mask, bool says);
  uint32_t activeLanes(Thread& thread, const void* at);
  void accessLine(Thread& thread, const LinePart& part);
  void* shared(const void* key, uint64_t bytes);
  Grid& grid() { return grid_; }

  [[noreturn]] void fail(const Thread* thread, const std::string& what) const;

 private:
  struct Barrier {
    uint32_t threads = 0, came = 0;
    std::bitset<kMaxThreads> who;
    std::vector<Thread*> waiting;
  };

  void resume(Thread& thread);
  void block(Thread& thread);
  void wake(Thread& thread);
  void holdBack();
  // Lanes that wait to be seen in step.
  bool releaseSteps(bool all);
  void releaseStepsOf(uint32_t warp, bool all);
  Thread* lane(const Thread& thread, uint32_t number) {
    const uint32_t other = thread.number / kLanes * kLanes + number;
    return other < threads_.size() ? threads_[other].get() : nullptr;
  }

  Grid& grid_;
  const uint32_t number_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> ready_, now_;
  std::vector<uint32_t> stepping_, warps_;  // of which lanes wait to be seen in step
  std::vector<std::vector<LinePart>> lines_;
  std::map<const void*, std::unique_ptr<char[]>> shared_;
  Barrier barriers_[16];
  uint64_t turns_ = 0;
  size_t left_;
};

}  // namespace simt
