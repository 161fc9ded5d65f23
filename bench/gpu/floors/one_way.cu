// What one GPU can push to another, or read of it, one way, by bulk copies through the blocks' memory, while the receiver
// adds what came before to its own: a reduce or a gather of two ranks, of which nobody is told or waited for.
//   nvcc -O3 -std=c++20 -arch=sm_90 -I../../../native -o one_way one_way.cu && ./one_way
#include "device/cuda/bulk_copies.cuh"
#include "sums.cuh"

namespace {

using ncclrun::cuda::BulkCopies;

constexpr uint32_t kSharedBytes = (192 << 10) + 128;

// Where a block's slots lie in the receiver's memory: so far apart, so many bytes that are written again and again, and
// where the block begins in them.
struct Layout {
  size_t stride, period, shift;
  __device__ size_t at(size_t sent) const { return blockIdx.x * stride + (blockIdx.x * shift + sent) % period; }
};
struct OneWay : Sum {
  Layout layout;
};

extern __shared__ __align__(128) char shared[];

// One thread pushes by pieces, of which kAhead are loaded before the oldest is stored.
template <uint32_t kPiece, uint32_t kPlaces, uint32_t kAhead>
__global__ void push(OneWay all) {
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
    copies.store(all.target + all.layout.at(size_t(stored) * kPiece), shared + stored % kPlaces * kPiece, kPiece);
  }
  copies.awaitStores<0>();
}

// All threads store what they load.
template <int kUnroll>
__global__ void store(OneWay all) {
  const size_t share = all.bytes / gridDim.x, begin = blockIdx.x * share;
  const auto* from = reinterpret_cast<const uint4*>(all.sent + begin);
  for (size_t i = threadIdx.x; i < share / 16; i += size_t(kUnroll) * blockDim.x) {
    uint4 loaded[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; u++)
      if (i + u * blockDim.x < share / 16) loaded[u] = from[i + u * blockDim.x];
#pragma unroll
    for (int u = 0; u < kUnroll; u++)
      if (i + u * blockDim.x < share / 16) *reinterpret_cast<uint4*>(all.target + all.layout.at((i + u * blockDim.x) * 16)) = loaded[u];
  }
}

__global__ void add(OneWay all) {
  const size_t share = all.bytes / gridDim.x, begin = blockIdx.x * share;
  addAll<6>(all.own + begin, all.theirs + all.layout.at(0), all.out + begin, share, kThreads, 256 << 10);
}

// The receiver reads the peer's by bulk copies, its own too, and adds.
template <uint32_t kPiece, uint32_t kStages>
__global__ void pull(OneWay all) {
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

using Kernel = void (*)(OneWay);
constexpr size_t kBytes = 192 << 20;  // each block has a whole number of pieces

void time(const char* name, Kernel sends, Kernel receives, uint32_t senders, Layout layout) {
  std::printf("%-44s", name);
  for (int side = 0; side < 2; side++) {
    MUST(cudaSetDevice(side));
    for (Kernel kernel : {sends, receives})
      if (kernel != nullptr) MUST(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  }
  for (const int blocks : {8, 12, 16, 24, 32, 48, 64}) {
    const double microseconds = measure([&](int side) {
      const Side &mine = sides[side], &theirs = sides[1 - side];
      const size_t slots = kBytes;  // behind the sums
      OneWay all{};
      all.own = mine.send;
      all.theirs = sends != nullptr ? mine.receive + slots : theirs.send;
      all.sent = mine.send + kBytes;
      all.target = theirs.receive + slots;
      all.out = mine.receive;
      all.bytes = kBytes;
      all.layout = layout;
      if (layout.stride == 0) all.layout.stride = all.layout.period = kBytes / blocks;
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
  constexpr size_t KiB = 1 << 10, MiB = 1 << 20;
  struct Place {
    const char* name;
    Layout layout;
  };
  for (const Place& place : {Place{"1 MiB each", {MiB, MiB, 0}}, Place{"256 KiB each", {256 * KiB, 256 * KiB, 0}},
                             Place{"64 KiB each", {64 * KiB, 64 * KiB, 0}},
                             Place{"2 MiB each", {2 * MiB, 2 * MiB, 0}},
                             Place{"1 MiB of 1472.5 each", {2945 * KiB / 2, MiB, 0}},
                             Place{"1 MiB of 1040 KiB each", {1040 * KiB, MiB, 0}},
                             Place{"1 MiB of 1026 KiB each", {1026 * KiB, MiB, 0}},
                             Place{"1 MiB each, each 16 KiB further", {MiB, MiB, 16 * KiB}},
                             Place{"1 MiB each, each 80 KiB further", {MiB, MiB, 80 * KiB}},
                             Place{"all of it, in its place", {0, 0, 0}}}) {
    std::printf("slots: %s\n", place.name);
    time("  pushed by  8 KiB, 12 places, 6 ahead", push<8 << 10, 12, 6>, add, 32, place.layout);
    time("  pushed by 16 KiB,  6 places, 3 ahead", push<16 << 10, 6, 3>, add, 32, place.layout);
    time("  pushed by 32 KiB,  6 places, 3 ahead", push<32 << 10, 6, 3>, add, 32, place.layout);
    time("  stored by 512 threads, 8 at once", store<8>, add, 512, place.layout);
  }
  time("pulled by  8 KiB, 8 stages", nullptr, pull<8 << 10, 8>, 0, {});
  time("pulled by 16 KiB, 6 stages", nullptr, pull<16 << 10, 6>, 0, {});
}
