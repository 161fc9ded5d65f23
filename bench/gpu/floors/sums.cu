// What it takes to add a peer's floats to one's own, the half of a reduce_scatter of two ranks that costs blocks, by who
// moves the peer's and how; nobody is told or waited for.
//   nvcc -O3 -std=c++20 -arch=sm_90 -I../../../native -o sums sums.cu && ./sums
#include "bulk_sums.cuh"

namespace {

constexpr uint32_t kPiece = 32 << 10, kPush = 16 << 10, kPlaces = 4;
constexpr uint32_t kSharedBytes = 6 * kPiece + 128, kSlots = 1 << 20;

// One thread pushes into a slot of kSlots bytes, the others add what lies in such a slot.
__global__ void pushAndAdd(Sum all) {
  const size_t share = all.bytes / gridDim.x, begin = blockIdx.x * share;
  const uint32_t workers = kThreads - 32;
  if (threadIdx.x < workers) {
    addAll<6>(all.own + begin, all.theirs + blockIdx.x * kSlots, all.out + begin, share, workers, kSlots);
  } else if (threadIdx.x == workers) {
    pushPieces<kPush, kPlaces, 2>(all, [](size_t sent) { return blockIdx.x * size_t(kSlots) + sent % kSlots; });
  }
}

// The same, read from the peer by all threads.
__global__ void loadAndAdd(Sum all) {
  const size_t share = all.bytes / gridDim.x, begin = blockIdx.x * share;
  addAll<6>(all.own + begin, all.theirs + begin, all.out + begin, share, kThreads, ~size_t(0));
}

__global__ void pullAndAdd(Sum all) { pullPieces<kPiece, 3>(all); }

}  // namespace

int main() {
  setUp();
  const size_t bytes = 192 << 20;  // each block has a whole number of pieces
  for (int side = 0; side < 2; side++) {
    MUST(cudaSetDevice(side));
    for (auto* kernel : {pushAndAdd, loadAndAdd, pullAndAdd})
      MUST(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  }
  fillAll();
  struct Way {
    const char* name;
    void (*kernel)(Sum);
    bool isPush;
  };
  std::printf("GB/s each way, by 8, 16, 32, 48, 64 blocks\n");
  for (const Way& way : {Way{"bulk copies to the peer's slot, and sums of one's own", pushAndAdd, true},
                         Way{"sums of what is loaded from the peer", loadAndAdd, false},
                         Way{"sums of what bulk copies load from the peer", pullAndAdd, false}}) {
    std::printf("%-54s", way.name);
    for (const int blocks : {8, 16, 32, 48, 64}) {
      const double microseconds = measure([&](int side) {
        const Side &mine = sides[side], &theirs = sides[1 - side];
        const size_t slots = kBuffer - size_t(64) * kSlots;  // behind the sums
        way.kernel<<<blocks, kThreads, kSharedBytes, mine.stream>>>({.own = mine.send,
                                                                     .theirs = way.isPush ? mine.receive + slots : theirs.send,
                                                                     .sent = mine.send + bytes,
                                                                     .target = theirs.receive + slots,
                                                                     .out = mine.receive,
                                                                     .bytes = bytes});
      });
      std::printf(" %6.1f", double(bytes) / microseconds / 1000);
      if (!way.isPush) check(way.name, bytes);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}
