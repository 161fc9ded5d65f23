// Measures how fast one GPU pushes operands to another, or the other reads them, in one direction, while the receiver adds
// earlier operands to its own: the data transfer of a reduce or gather of two ranks, without any synchronization.
//   nvcc -O3 -std=c++20 -arch=sm_90 -I../../../native -o one_way one_way.cu && ./one_way
#include "bulk_sums.cuh"

namespace {

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

template <uint32_t kPiece, uint32_t kPlaces, uint32_t kAhead>
__global__ void push(OneWay all) {
  if (threadIdx.x == 0) pushPieces<kPiece, kPlaces, kAhead>(all, [&](size_t sent) { return all.layout.at(sent); });
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

template <uint32_t kPiece, uint32_t kStages>
__global__ void pull(OneWay all) {
  pullPieces<kPiece, kStages>(all);
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
