// What one GPU can push to another, or read of it, one way, by bulk copies through the blocks' memory, while the receiver
// adds what came before to its own: a reduce or a gather of two ranks, of which nobody is told or waited for.
//   nvcc -O3 -std=c++20 -arch=sm_90 -I../../../native -o one_way one_way.cu && ./one_way
#include "device/cuda/bulk_copies.cuh"
#include "sums.cuh"

namespace {

using ncclrun::cuda::BulkCopies;

constexpr uint32_t kSlots = 1 << 20, kSharedBytes = (192 << 10) + 128;

extern __shared__ __align__(128) char shared[];

// One thread pushes by pieces, of which kAhead are loaded before the oldest is stored.
template <uint32_t kPiece, uint32_t kPlaces, uint32_t kAhead>
__global__ void push(Sum all) {
  if (threadIdx.x != 0) return;
  const size_t share = all.bytes / gridDim.x, begin = blockIdx.x * share;
  auto* arrivals = reinterpret_cast<uint64_t*>(shared + kPlaces * kPiece);
  for (uint32_t i = 0; i < kPlaces; i++) BulkCopies::begin(&arrivals[i]);
  BulkCopies::order();
  BulkCopies copies;
  const auto pieces = uint32_t(share / kPiece);
  for (uint32_t i = 0; i < pieces + kAhead; i++) {
    if (i < pieces) {
      copies.awaitStoresRead<kPlaces - kAhead - 1>();
      copies.load(shared + i % kPlaces * kPiece, all.sent + begin + size_t(i) * kPiece, kPiece, &arrivals[i % kPlaces]);
    }
    if (i < kAhead) continue;
    const uint32_t stored = i - kAhead;
    copies.await(&arrivals[stored % kPlaces], stored / kPlaces);
    copies.store(all.target + blockIdx.x * kSlots + size_t(stored) * kPiece % kSlots, shared + stored % kPlaces * kPiece,
                 kPiece);
  }
  copies.awaitStores<0>();
}

// All threads store what they load.
template <int kUnroll>
__global__ void store(Sum all) {
  const size_t share = all.bytes / gridDim.x, begin = blockIdx.x * share;
  const auto* from = reinterpret_cast<const uint4*>(all.sent + begin);
  auto* to = reinterpret_cast<uint4*>(all.target + blockIdx.x * kSlots);
  for (size_t i = threadIdx.x; i < share / 16; i += size_t(kUnroll) * blockDim.x) {
    uint4 loaded[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; u++)
      if (i + u * blockDim.x < share / 16) loaded[u] = from[i + u * blockDim.x];
#pragma unroll
    for (int u = 0; u < kUnroll; u++)
      if (i + u * blockDim.x < share / 16) to[(i + u * blockDim.x) % (kSlots / 16)] = loaded[u];
  }
}

__global__ void add(Sum all) {
  const size_t share = all.bytes / gridDim.x, begin = blockIdx.x * share;
  addAll<6>(all.own + begin, all.theirs + blockIdx.x * kSlots, all.out + begin, share, kThreads, kSlots);
}

// The receiver reads the peer's by bulk copies, its own too, and adds.
template <uint32_t kPiece, uint32_t kStages>
__global__ void pull(Sum all) {
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

using Kernel = void (*)(Sum);
constexpr size_t kBytes = 192 << 20;  // each block has a whole number of pieces

void time(const char* name, Kernel sends, Kernel receives, uint32_t senders) {
  std::printf("%-44s", name);
  for (int side = 0; side < 2; side++) {
    MUST(cudaSetDevice(side));
    for (Kernel kernel : {sends, receives})
      if (kernel != nullptr) MUST(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  }
  for (const int blocks : {8, 12, 16, 24, 32, 48, 64}) {
    const double microseconds = measure([&](int side) {
      const Side &mine = sides[side], &theirs = sides[1 - side];
      const size_t slots = kBuffer - size_t(64) * kSlots;
      const Sum all{.own = mine.send,
                    .theirs = sends != nullptr ? mine.receive + slots : theirs.send,
                    .sent = mine.send + kBytes,
                    .target = theirs.receive + slots,
                    .out = mine.receive,
                    .bytes = kBytes};
      if (side == 0 && sends != nullptr) sends<<<blocks, senders, kSharedBytes, mine.stream>>>(all);
      if (side == 1 && receives != nullptr) receives<<<blocks, kThreads, kSharedBytes, mine.stream>>>(all);
    });
    std::printf(" %6.1f", double(kBytes) / microseconds / 1000);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main() {
  setUp();
  fillAll();
  std::printf("GB/s one way, by 8, 12, 16, 24, 32, 48, 64 blocks\n");
  time("pushed by  4 KiB, 12 places, 8 ahead", push<4 << 10, 12, 8>, add, 32);
  time("pushed by  8 KiB,  8 places, 4 ahead", push<8 << 10, 8, 4>, add, 32);
  time("pushed by 16 KiB,  6 places, 3 ahead", push<16 << 10, 6, 3>, add, 32);
  time("pushed by 16 KiB, 12 places, 6 ahead", push<16 << 10, 12, 6>, add, 32);
  time("pushed by 32 KiB,  6 places, 3 ahead", push<32 << 10, 6, 3>, add, 32);
  time("the same, nothing added", push<32 << 10, 6, 3>, nullptr, 32);
  time("stored by 512 threads, 8 at once", store<8>, add, 512);
  time("stored by 512 threads, 4 at once", store<4>, add, 512);
  time("stored by 640 threads, 2 at once", store<2>, add, 640);
  time("pulled by  8 KiB, 8 stages", nullptr, pull<8 << 10, 8>, 0);
  time("pulled by 16 KiB, 6 stages", nullptr, pull<16 << 10, 6>, 0);
  time("pulled by 32 KiB, 3 stages", nullptr, pull<32 << 10, 3>, 0);
}
