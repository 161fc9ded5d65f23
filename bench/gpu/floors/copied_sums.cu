// What a reduce_scatter of two ranks takes whose data copy engines bring: chunks of the peer's come into places of a
// scratch in turn, while blocks add what lies in another to their own. Words say what has come and what is free.
//   nvcc -O3 -std=c++20 -arch=sm_90 -o copied_sums copied_sums.cu && ./copied_sums
#include "sums.cuh"
#include "words.cuh"

namespace {

enum { kFree = 0, kCame = 16 };  // words of a side, and then of each place

__global__ void __launch_bounds__(kThreads) addChunk(Sum all) {
  const size_t share = (all.bytes / 16 + gridDim.x - 1) / gridDim.x * 16, begin = blockIdx.x * share;
  if (begin < all.bytes) {
    const size_t bytes = begin + share < all.bytes ? share : all.bytes - begin;
    addAll<6>(all.own + begin, all.theirs + begin, all.out + begin, bytes, kThreads, ~size_t(0));
  }
}

void awaitWord(cudaStream_t stream, uint32_t* on) { run(stream, {waits(on), writes(on, 0)}); }

void reduceScatter(int side, size_t bytes, size_t chunk, size_t places, int blocks) {
  Side& mine = sides[side];
  const auto at = [](int whose, int which, size_t place) { return word(true, whose, which + int(place)); };
  const size_t chunks = (bytes + chunk - 1) / chunk, scratch = kBuffer - places * chunk;
  const auto length = [&](size_t k) { return std::min(chunk, bytes - k * chunk); };
  std::vector<CUstreamBatchMemOpParams> free;
  for (size_t k = 0; k < std::min(places, chunks); k++) free.push_back(writes(at(1 - side, kFree, k), 1));
  run(mine.stream, free);
  MUST(cudaEventRecord(mine.forked, mine.stream));
  MUST(cudaStreamWaitEvent(mine.line, mine.forked));
  for (size_t k = 0; k < chunks; k++) {
    const size_t place = k % places;
    awaitWord(mine.line, at(side, kFree, place));
    MUST(cudaMemcpyAsync(sides[1 - side].receive + scratch + place * chunk, mine.send + bytes + k * chunk, length(k),
                         cudaMemcpyDeviceToDevice, mine.line));
    run(mine.line, {writes(at(1 - side, kCame, place), 1)});
  }
  for (size_t k = 0; k < chunks; k++) {
    const size_t place = k % places;
    awaitWord(mine.stream, at(side, kCame, place));
    addChunk<<<blocks, kThreads, 0, mine.stream>>>({.own = mine.send + k * chunk,
                                                    .theirs = mine.receive + scratch + place * chunk,
                                                    .sent = nullptr,
                                                    .target = nullptr,
                                                    .out = mine.receive + k * chunk,
                                                    .bytes = length(k)});
    if (k + places < chunks) run(mine.stream, {writes(at(1 - side, kFree, place), 1)});
  }
  MUST(cudaEventRecord(mine.joined, mine.line));
  MUST(cudaStreamWaitEvent(mine.stream, mine.joined));
}

}  // namespace

int main() {
  setUp();
  setUpWords();
  fillAll();
  std::printf("us, and GB/s each way, of 32, 64, 128 MiB by 8, 16, 32, 64 blocks\n");
  struct Way {
    size_t chunk, places;
  };
  for (const auto [chunk, places] : {Way{8, 2}, Way{8, 4}, Way{16, 2}, Way{16, 3}, Way{32, 2}, Way{64, 1}}) {
    for (const size_t mebibytes : {32, 64, 128}) {
      std::printf("%zu places of %2zu MiB, %3zu MiB:", places, chunk, mebibytes);
      for (const int blocks : {8, 16, 32, 64}) {
        const size_t bytes = mebibytes << 20;
        const double microseconds = measure([&](int side) { reduceScatter(side, bytes, chunk << 20, places, blocks); });
        std::printf("  %7.1f %5.1f", microseconds, double(bytes) / microseconds / 1000);
        check("reduce_scatter", bytes);
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
}
