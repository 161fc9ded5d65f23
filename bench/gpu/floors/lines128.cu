// What lines of 128 bytes, which carry 120 and a flag (protocol LL128), take from one GPU to the other, by who sends
// and who receives when:  nvcc -O3 -std=c++20 -arch=sm_90 -o lines128 lines128.cu && ./lines128
#include "two_gpus.cuh"

namespace {

enum class Way { sentFirst, blocksApart, warpsApart, partsInTurn };
// As many bytes as are sent, from the GPU's own memory to its own memory: as in alltoall.
enum class OwnCopy { none, behindSends, amongSends, byBlocksOfItsOwn };
constexpr int kCopyingBlocks = 32;  // of its own

struct Launch {
  const uint64_t* own;
  uint64_t* target;
  char* out;        // slots at the peer, one for each operation of a graph
  const char* in;
  uint32_t* count;  // of launches
  size_t groups;    // of four lines
  Way way;
  OwnCopy ownCopy;
  const uint64_t* copied;
  uint64_t* copy;
  bool sends, receives;
};
constexpr size_t kSlot = 18 << 20;
constexpr size_t kOwn = 4 << 20;  // words, behind what is sent and what is received
constexpr int kUnroll = 4;

// Groups first, first + step, … below end.
struct Range {
  size_t first, step, end;
};

__device__ void send(const Launch& launch, uint64_t flag, uint64_t* slot, Range range) {
  const int lane = threadIdx.x % 8, line = threadIdx.x % 32 / 8;
  const bool copies = launch.ownCopy == OwnCopy::amongSends;
  for (size_t group = range.first; group < range.end; group += kUnroll * range.step) {
    uint64_t a[kUnroll], b[kUnroll], c[kUnroll], d[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; u++) {
      if (group + u * range.step >= range.end) continue;
      const size_t at = ((group + u * range.step) * 4 + line) * 15 + lane * 2;
      a[u] = launch.own[at];
      b[u] = lane == 7 ? flag : launch.own[at + 1];
      if (copies) c[u] = launch.copied[at];
      if (copies && lane != 7) d[u] = launch.copied[at + 1];
    }
#pragma unroll
    for (int u = 0; u < kUnroll; u++) {
      if (group + u * range.step >= range.end) continue;
      uint64_t* const to = slot + ((group + u * range.step) * 4 + line) * 16 + lane * 2;
      asm volatile("st.volatile.global.v2.u64 [%0], {%1,%2};" ::"l"(to), "l"(a[u]), "l"(b[u]) : "memory");
    }
#pragma unroll
    for (int u = 0; u < kUnroll; u++) {
      if (!copies || group + u * range.step >= range.end) continue;
      uint64_t* const to = launch.copy + ((group + u * range.step) * 4 + line) * 15 + lane * 2;
      to[0] = c[u];
      if (lane != 7) to[1] = d[u];
    }
  }
}

// The block's share of the own copy.
__device__ void copyOwn(const Launch& launch, size_t block, size_t blocks) {
  const size_t count = launch.groups * 30, share = (count + blocks - 1) / blocks;
  const size_t begin = block * share, end = begin + share < count ? begin + share : count;
  copyWords(reinterpret_cast<const uint4*>(launch.copied), reinterpret_cast<uint4*>(launch.copy), begin + threadIdx.x,
            blockDim.x, end);
}

__device__ void receive(const Launch& launch, uint64_t flag, const uint64_t* slot, Range range) {
  const int lane = threadIdx.x % 8, line = threadIdx.x % 32 / 8;
  for (size_t group = range.first; group < range.end; group += kUnroll * range.step) {
    uint64_t a[kUnroll], b[kUnroll];
    bool missing;
    do {
      missing = false;
#pragma unroll
      for (int u = 0; u < kUnroll; u++) {
        if (group + u * range.step >= range.end) continue;
        const uint64_t* const from = slot + ((group + u * range.step) * 4 + line) * 16 + lane * 2;
        asm volatile("ld.volatile.global.v2.u64 {%0,%1}, [%2];" : "=l"(a[u]), "=l"(b[u]) : "l"(from) : "memory");
      }
#pragma unroll
      for (int u = 0; u < kUnroll; u++)
        missing = missing || (group + u * range.step < range.end && lane == 7 && b[u] != flag);
    } while (__any_sync(~0u, missing));
#pragma unroll
    for (int u = 0; u < kUnroll; u++) {
      if (group + u * range.step >= range.end) continue;
      uint64_t* const to = launch.target + ((group + u * range.step) * 4 + line) * 15 + lane * 2;
      to[0] = a[u];
      if (lane != 7) to[1] = b[u];
    }
  }
}

__global__ void __launch_bounds__(512, 1) exchange(Launch launch) {
  __shared__ uint32_t number;
  if (threadIdx.x == 0) number = ++launch.count[blockIdx.x * 32];
  __syncthreads();
  auto* const out = reinterpret_cast<uint64_t*>(launch.out + number % kOperations * kSlot);
  const auto* const in = reinterpret_cast<const uint64_t*>(launch.in + number % kOperations * kSlot);
  const bool apart = launch.way == Way::blocksApart, copiesApart = launch.ownCopy == OwnCopy::byBlocksOfItsOwn;
  const size_t exchanging = gridDim.x - (copiesApart ? kCopyingBlocks : 0);
  if (blockIdx.x >= exchanging) return copyOwn(launch, blockIdx.x - exchanging, kCopyingBlocks);
  const size_t blocks = apart ? exchanging / 2 : exchanging, block = blockIdx.x % blocks;
  const bool sends = launch.sends && (!apart || blockIdx.x < blocks);
  const bool receives = launch.receives && (!apart || blockIdx.x >= blocks);
  const size_t share = (launch.groups + blocks - 1) / blocks, begin = block * share;
  const size_t end = begin + share < launch.groups ? begin + share : launch.groups;
  const size_t warps = blockDim.x / 32, warp = threadIdx.x / 32;
  if (launch.way == Way::warpsApart) {
    const size_t half = warps / 2;
    if (sends && warp < half) send(launch, number, out, {begin + warp, half, end});
    if (receives && warp >= half) receive(launch, number, in, {begin + warp - half, half, end});
  } else if (launch.way == Way::partsInTurn) {
    const size_t part = kUnroll * warps;
    for (size_t at = begin; at < end + part; at += part) {
      if (sends && at < end) send(launch, number, out, {at + warp, warps, at + part < end ? at + part : end});
      if (receives && at > begin) receive(launch, number, in, {at - part + warp, warps, at < end ? at : end});
    }
  } else {
    if (sends) send(launch, number, out, {begin + warp, warps, end});
    if (launch.ownCopy == OwnCopy::behindSends) copyOwn(launch, block, blocks);
    if (receives) receive(launch, number, in, {begin + warp, warps, end});
  }
}

double timeOf(Way way, OwnCopy ownCopy, int blocks, size_t bytes, bool both) {
  for (int side = 0; side < 2; side++) {
    MUST(cudaSetDevice(side));
    MUST(cudaMemset(sides[side].words, 0, kWords * sizeof(uint32_t)));
    MUST(cudaMemset(sides[side].receive, 0, kBuffer));
    MUST(cudaDeviceSynchronize());
  }
  return measure([&](int side) {
    const Side &own = sides[side], &peer = sides[1 - side];
    // The targets lie behind what is sent.
    auto* const target = reinterpret_cast<uint64_t*>(own.send + kBuffer / 2);
    const auto* const send = reinterpret_cast<const uint64_t*>(own.send);
    const Launch launch{send,    target, peer.receive, own.receive, own.words, bytes / 480, way, ownCopy,
                        send + kOwn, target + kOwn, both || side == 0, both || side == 1};
    exchange<<<blocks + (ownCopy == OwnCopy::byBlocksOfItsOwn ? kCopyingBlocks : 0), 512, 0, own.stream>>>(launch);
  });
}

}  // namespace

int main() {
  setUp();
  const auto sizes = {size_t(1) << 20, size_t(4) << 20, size_t(8) << 20, size_t(16) << 20};
  std::printf("us; 1, 4, 8, 16 MiB each way, both ways at once; then one way\n");
  const auto each = [&](const char* name, Way way, int blocks, OwnCopy ownCopy = OwnCopy::none) {
    row(name, sizes, [&](size_t bytes, bool both) { return timeOf(way, ownCopy, blocks, bytes, both); });
  };
  each("64 blocks, all sent first", Way::sentFirst, 64);
  each("64 blocks, parts in turn", Way::partsInTurn, 64);
  each("64 blocks, half of the warps send", Way::warpsApart, 64);
  each("64 blocks, half of them send", Way::blocksApart, 64);
  each("128 blocks, all sent first", Way::sentFirst, 128);
  each("128 blocks, half of the warps send", Way::warpsApart, 128);
  each("128 blocks, half of them send", Way::blocksApart, 128);
  std::printf("with a copy of as much within each GPU\n");
  each("64 blocks, it comes behind all sends", Way::sentFirst, 64, OwnCopy::behindSends);
  each("64 blocks, it comes among sends", Way::sentFirst, 64, OwnCopy::amongSends);
  each("64 blocks, and 32 more for it", Way::sentFirst, 64, OwnCopy::byBlocksOfItsOwn);
}
