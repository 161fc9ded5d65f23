// What it takes to add a peer's floats to one's own, the half of a reduce_scatter of two ranks that costs blocks, by who
// moves the peer's and how; nobody is told or waited for.
//   nvcc -O3 -std=c++20 -arch=sm_90 -I../../../native -o sums sums.cu && ./sums
#include "device/cuda/bulk_copies.cuh"
#include "sums.cuh"

namespace {

using ncclrun::cuda::BulkCopies;

constexpr uint32_t kPiece = 32 << 10, kPush = 16 << 10, kPlaces = 4;
constexpr uint32_t kSharedBytes = 6 * kPiece + 128, kSlots = 1 << 20;

extern __shared__ __align__(128) char shared[];

// One thread pushes by bulk copies into a slot of kSlots bytes, the others add what lies in such a one.
__global__ void pushAndAdd(Sum all) {
  const size_t share = all.bytes / gridDim.x, begin = blockIdx.x * share;
  const uint32_t workers = kThreads - 32;
  if (threadIdx.x < workers) {
    addAll<6>(all.own + begin, all.theirs + blockIdx.x * kSlots, all.out + begin, share, workers, kSlots);
  } else if (threadIdx.x == workers) {
    auto* arrivals = reinterpret_cast<uint64_t*>(shared + kPlaces * kPush);
    for (uint32_t i = 0; i < kPlaces; i++) BulkCopies::begin(&arrivals[i]);
    BulkCopies::order();
    BulkCopies copies;
    const auto pieces = uint32_t(share / kPush);
    for (uint32_t i = 0; i < pieces + 2; i++) {  // two are loaded ahead
      if (i < pieces) {
        copies.awaitStoresRead<1>();
        copies.load(shared + i % kPlaces * kPush, all.sent + begin + size_t(i) * kPush, kPush, &arrivals[i % kPlaces]);
      }
      if (i < 2) continue;
      const uint32_t stored = i - 2;
      copies.await(&arrivals[stored % kPlaces], stored / kPlaces);
      copies.store(all.target + blockIdx.x * kSlots + size_t(stored) * kPush % kSlots, shared + stored % kPlaces * kPush,
                   kPush);
    }
    copies.awaitStores<0>();
  }
}

// The same, read from the peer by all threads.
__global__ void loadAndAdd(Sum all) {
  const size_t share = all.bytes / gridDim.x, begin = blockIdx.x * share;
  addAll<6>(all.own + begin, all.theirs + begin, all.out + begin, share, kThreads, ~size_t(0));
}

// Read from the peer by bulk copies into the block's memory, one's own too.
__global__ void pullAndAdd(Sum all) {
  constexpr uint32_t kStages = 3;
  const size_t share = all.bytes / gridDim.x, begin = blockIdx.x * share;
  const auto pieces = uint32_t(share / kPiece);
  auto* arrivals = reinterpret_cast<uint64_t*>(shared + 2 * kStages * kPiece);
  BulkCopies copies;
  const auto ask = [&](uint32_t piece) {
    if (piece >= pieces || threadIdx.x != 0) return;
    const size_t from = begin + size_t(piece) * kPiece;
    char* const to = shared + piece % kStages * 2 * kPiece;
    uint64_t* const arrival = &arrivals[piece % kStages * 2];
    copies.load(to, all.theirs + from, kPiece, arrival);
    copies.load(to + kPiece, all.own + from, kPiece, arrival + 1);
  };
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < 2 * kStages; i++) BulkCopies::begin(&arrivals[i]);
    BulkCopies::order();
  }
  __syncthreads();
  for (uint32_t i = 0; i < kStages; i++) ask(i);
  for (uint32_t i = 0; i < pieces; i++) {
    for (uint32_t which : {0, 1}) copies.await(&arrivals[i % kStages * 2 + which], i / kStages);
    const char* const theirs = shared + i % kStages * 2 * kPiece;
    addAll<4>(theirs + kPiece, theirs, all.out + begin + size_t(i) * kPiece, kPiece, kThreads, kPiece);
    __syncthreads();
    ask(i + kStages);
  }
}

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
