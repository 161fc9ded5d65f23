// A GPU's way to run a kernel, on a thread of this machine: each thread of the grid is a fiber, which runs until it
// waits for others or stands aside. Which comes next is left to chance, and now and then a thread or a warp is held
// back for a while, so that what relies on an order that no barrier makes goes wrong soon. What no program may do with
// barriers ends the process with a sentence, and so does a block that cannot go on.
//
//   NCCLRUN_STAND_IN_SEED=N           of what is left to chance; else each process has its own
//   NCCLRUN_STAND_IN_LANES=together   lanes of a warp that run the same instruction are seen to do so, as far as they
//                                     ever come to it; =apart: they never are. Else now and then they are not.
#pragma once
#include <cstdint>
#include <functional>

#define SIMT_EXPORT __attribute__((visibility("default")))

namespace simt {

// As CUDA's, of which kernels use one dimension.
struct Index {
  uint32_t x;
};
struct Place {
  Index thread, block, blockThreads, gridBlocks;
};
// Of the thread that runs.
SIMT_EXPORT extern constinit thread_local Place place;

// Runs `body` once as each thread of the grid, on the GPU's SMs; returns when all have ended.
void runGrid(const char* kernel, int device, uint32_t blocks, uint32_t threads, const std::function<void()>& body);

// What a kernel's threads call.

// Once in so many times.
SIMT_EXPORT bool chance(uint32_t times);
// Lets others go first, at random.
SIMT_EXPORT void delay();
// Lets others go first, for lack of something that they or another GPU will bring.
SIMT_EXPORT void standAside();
// Named barriers of a block, of which there are 16. `threads`: number of threads that take part, to wait or only
// arrive.
SIMT_EXPORT void barrierSync(uint32_t barrier, uint32_t threads);
SIMT_EXPORT void barrierArrive(uint32_t barrier, uint32_t threads);
// Waits for the warp's lanes of the mask: whether one of them says so.
SIMT_EXPORT bool syncLanes(uint32_t mask, bool says);
// Which lanes of the warp have come to the same place in the program.
SIMT_EXPORT uint32_t activeLanes();
// A lane's sixteen bytes of a line of 128. Eight lanes whose activeLanes() have just had all of them access the line in
// one piece.
SIMT_EXPORT void loadLine(const uint64_t* from, uint64_t& a, uint64_t& b);
SIMT_EXPORT void storeLine(uint64_t* to, uint64_t a, uint64_t b);
// Memory that a block's threads share; the same for the same key.
SIMT_EXPORT void* shared(const void* key, uint64_t bytes);

template <class T>
T& sharedAs() {
  static constexpr char key = 0;
  return *static_cast<T*>(shared(&key, sizeof(T)));
}

}  // namespace simt
