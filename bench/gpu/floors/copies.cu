// What a copy from one GPU into the other's buffer takes, by the ways of saying that the buffer is ready and that all
// is there:  nvcc -O3 -std=c++20 -arch=sm_90 -o copies copies.cu && ./copies
#include "words.cuh"

namespace {

enum { kReady = 0, kArrived = 16 };  // words of a side, a cache line apart

bool sends(int side, bool both) { return both || side == 0; }
bool receives(int side, bool both) { return both || side == 1; }

void copy(int side, cudaStream_t stream, size_t bytes) {
  MUST(cudaMemcpyAsync(sides[1 - side].receive, sides[side].send, bytes, cudaMemcpyDeviceToDevice, stream));
}
// How a GPU copies within its own memory.
enum class Own { driver, peerCall, rows, overlapping, blocks8, blocks16 };
__global__ void __launch_bounds__(512, 1) copyBlocks(const uint4* from, uint4* to, size_t count) {
  copyWords(from, to, size_t(blockIdx.x) * blockDim.x + threadIdx.x, size_t(gridDim.x) * blockDim.x, count);
}
void copyOwn(int side, cudaStream_t stream, size_t bytes, Own how) {
  char* const to = sides[side].receive + kBuffer / 2;
  const char* const from = sides[side].send + kBuffer / 2;
  switch (how) {
    case Own::driver:
      MUST(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
      return;
    case Own::peerCall:
      MUST(cudaMemcpyPeerAsync(to, side, from, side, bytes, stream));
      return;
    case Own::rows: {
      constexpr size_t kRow = 1 << 18, kPitch = kRow + 512;
      MUST(cudaMemcpy2DAsync(to, kPitch, from, kPitch, kRow, bytes / kRow, cudaMemcpyDeviceToDevice, stream));
      return;
    }
    case Own::overlapping: {
      cudaMemcpyAttributes attributes{};
      attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
      attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
      size_t all = 0;
      void* const targets[] = {to};
      const void* const sources[] = {from};
      MUST(cudaMemcpyBatchAsync(targets, sources, &bytes, 1, &attributes, &all, 1, stream));
      return;
    }
    default:
      copyBlocks<<<how == Own::blocks8 ? 8 : 16, 512, 0, stream>>>(reinterpret_cast<const uint4*>(from),
                                                                   reinterpret_cast<uint4*>(to), bytes / 16);
  }
}
void sayReady(int side, bool both, bool inHost) {
  std::vector<CUstreamBatchMemOpParams> batch;
  if (receives(side, both)) batch.push_back(writes(word(inHost, 1 - side, kReady), 1));
  if (sends(side, both)) {
    batch.push_back(waits(word(inHost, side, kReady)));
    batch.push_back(writes(word(inHost, side, kReady), 0));
  }
  run(sides[side].stream, batch);
}
void sayArrived(int side, bool tells, bool awaits, bool inHost) {
  std::vector<CUstreamBatchMemOpParams> batch;
  if (tells) batch.push_back(writes(word(inHost, 1 - side, kArrived), 1));
  if (awaits) {
    batch.push_back(waits(word(inHost, side, kArrived)));
    batch.push_back(writes(word(inHost, side, kArrived), 0));
  }
  run(sides[side].stream, batch);
}

void byWords(int side, size_t bytes, bool both, bool inHost) {
  sayReady(side, both, inHost);
  if (sends(side, both)) copy(side, sides[side].stream, bytes);
  sayArrived(side, sends(side, both), receives(side, both), inHost);
}
void byWordsApart(int side, size_t bytes, bool both, bool inHost) {
  Side& one = sides[side];
  sayReady(side, both, inHost);
  if (sends(side, both)) {
    MUST(cudaEventRecord(one.forked, one.stream));
    MUST(cudaStreamWaitEvent(one.line, one.forked));
    copy(side, one.line, bytes);
    run(one.line, {writes(word(inHost, 1 - side, kArrived), 1)});
    MUST(cudaEventRecord(one.joined, one.line));
    MUST(cudaStreamWaitEvent(one.stream, one.joined));
  }
  sayArrived(side, false, receives(side, both), inHost);
}
void byMeetings(int side, size_t bytes, bool both) {
  meetOn(side, 4096);
  if (sends(side, both)) copy(side, sides[side].stream, bytes);
  meetOn(side, 8192);
}

// The same, with a copy of as much within each GPU beside it (as in alltoall). What tells of the peer's stands right
// behind it: else a graph runs one copy after the other.
void withOwn(int side, size_t bytes, Own how) {
  Side& one = sides[side];
  sayReady(side, true, true);
  MUST(cudaEventRecord(one.forked, one.stream));
  MUST(cudaStreamWaitEvent(one.line, one.forked));
  copy(side, one.stream, bytes);
  sayArrived(side, true, false, true);
  copyOwn(side, one.line, bytes, how);
  MUST(cudaEventRecord(one.joined, one.line));
  MUST(cudaStreamWaitEvent(one.stream, one.joined));
  sayArrived(side, false, true, true);
}

// Each block says and hears for itself: word 0 of the block's is "arrived", 8 "ready", 32 counts.
__global__ void __launch_bounds__(512, 1)
    push(const uint4* from, uint4* to, size_t count, uint32_t* mine, uint32_t* theirs, bool isSender, bool isReceiver) {
  __shared__ uint32_t number;
  mine += blockIdx.x * 64;
  theirs += blockIdx.x * 64;
  if (threadIdx.x == 0) {
    number = ++mine[32];
    if (isReceiver) tell(theirs + 8, number);
    if (isSender) await(mine + 8, number);
  }
  __syncthreads();
  if (isSender) {
    const size_t part = (count + gridDim.x - 1) / gridDim.x;
    const size_t begin = blockIdx.x * part, end = begin + part < count ? begin + part : count;
    copyWords(from, to, begin + threadIdx.x, blockDim.x, end);
    __syncthreads();
    if (threadIdx.x == 0) tell(theirs, number);
  }
  if (isReceiver && threadIdx.x == 0) await(mine, number);
}
void byStores(int side, size_t bytes, bool both, int blocks) {
  const size_t words = 16384;
  push<<<blocks, 512, 0, sides[side].stream>>>(
      reinterpret_cast<const uint4*>(sides[side].send), reinterpret_cast<uint4*>(sides[1 - side].receive), bytes / 16,
      sides[side].words + words, sides[1 - side].words + words, sends(side, both), receives(side, both));
}

}  // namespace

int main() {
  setUp();
  setUpWords();
  const auto sizes = {size_t(1) << 16, size_t(1) << 20, size_t(4) << 20, size_t(8) << 20, size_t(16) << 20, size_t(32) << 20};
  std::printf("us; 64 KiB, 1, 4, 8, 16, 32 MiB each way, both ways at once; then one way\n");
  const auto each = [&](const char* name, auto&& operation) {
    row(name, sizes, [&](size_t bytes, bool both) { return measure([&](int side) { operation(side, bytes, both); }); });
  };
  each("a copy, nobody told", [](int side, size_t bytes, bool both) {
    if (sends(side, both)) copy(side, sides[side].stream, bytes);
  });
  for (const bool inHost : {true, false}) {
    const char* const where = inHost ? "the host's" : "GPUs'";
    std::printf("words in %s memory\n", where);
    each("  one stream", [&](int side, size_t bytes, bool both) { byWords(side, bytes, both, inHost); });
    each("  the copy on a stream of its own",
         [&](int side, size_t bytes, bool both) { byWordsApart(side, bytes, both, inHost); });
  }
  each("kernels that meet before and behind the copy", byMeetings);
  for (const int blocks : {16, 32, 64, 128}) {
    char name[64];
    std::snprintf(name, sizeof name, "%d blocks that store, and say so", blocks);
    each(name, [&](int side, size_t bytes, bool both) { byStores(side, bytes, both, blocks); });
  }
  std::printf("8, 16, 32, 128 MiB both ways at once, and as much within each GPU\n");
  const auto large = {size_t(8) << 20, size_t(16) << 20, size_t(32) << 20, size_t(128) << 20};
  const auto eachOwn = [&](const char* name, bool eager, auto&& operation) {
    rowOf(name, large, {true}, [&](size_t bytes, bool) { return measure([&](int side) { operation(side, bytes); }, eager); });
  };
  constexpr std::pair<Own, const char*> kWays[] = {{Own::driver, "copied by cudaMemcpyAsync"},
                                                   {Own::peerCall, "copied by cudaMemcpyPeerAsync"},
                                                   {Own::rows, "copied by cudaMemcpy2DAsync"},
                                                   {Own::blocks8, "copied by 8 blocks"},
                                                   {Own::blocks16, "copied by 16 blocks"},
                                                   {Own::overlapping, "copied by cudaMemcpyBatchAsync, beside kernels"}};
  for (const bool eager : {false, true}) {
    std::printf("%s\n", eager ? "eager" : "in a graph");
    eachOwn("  nothing within", eager, [](int side, size_t bytes) { byWords(side, bytes, true, true); });
    for (const auto& [how, name] : kWays) {
      if ((how == Own::overlapping || how == Own::peerCall) && !eager) continue;  // a graph cannot have it
      std::printf("  %s\n", name);
      eachOwn("    this alone", eager, [&](int side, size_t bytes) { copyOwn(side, sides[side].stream, bytes, how); });
      eachOwn("    beside the peer's", eager, [&](int side, size_t bytes) { withOwn(side, bytes, how); });
    }
  }
}
