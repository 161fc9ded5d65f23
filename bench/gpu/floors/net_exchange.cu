// Measures the least that a small exchange between GPUs of two hosts takes over TCP without GPUDirect: a kernel writes a line to
// pinned host memory and waits for the peer's; a thread for each GPU, which does nothing else, sees the line, sends it over one
// connection of the loopback interface and puts what arrives into pinned memory that the kernel reads.
//   nvcc -O3 -std=c++20 -arch=sm_90 -o net_exchange net_exchange.cu && ./net_exchange [ROUNDS]
#include <arpa/inet.h>
#include <cuda_runtime.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <vector>

#define MUST(call)                                                                                  \
  do {                                                                                              \
    if (const auto status = (call); status != cudaSuccess) {                                        \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));          \
      std::exit(1);                                                                                 \
    }                                                                                               \
  } while (0)

namespace {

struct Line {
  alignas(64) volatile uint64_t number;
  uint64_t data;
};

struct Side {
  int connection = -1;
  Line *out = nullptr, *in = nullptr;
  cudaStream_t stream{};
};

Side sides[2];
std::atomic<bool> over = false;

__device__ void storeRelease(volatile uint64_t* at, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(const_cast<uint64_t*>(at)), "l"(value) : "memory");
}
__device__ uint64_t loadAcquire(volatile uint64_t* at) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(const_cast<uint64_t*>(at)) : "memory");
  return value;
}

__global__ void exchange(Line* out, Line* in, uint64_t number, uint64_t* sum) {
  out->data = *sum;
  storeRelease(&out->number, number);
  while (loadAcquire(&in->number) < number) {
  }
  *sum += in->data;
}

__global__ void nothing(uint64_t* sum) { *sum += 1; }

void progress(Side& side) {
  uint64_t sent = 0, buffer[2];
  while (!over.load(std::memory_order_relaxed)) {
    const uint64_t number = side.out->number;
    if (number != sent) {
      std::atomic_thread_fence(std::memory_order_acquire);
      const uint64_t message[2] = {number, side.out->data};
      if (send(side.connection, message, sizeof message, 0) != sizeof message) std::abort();
      sent = number;
    }
    if (recv(side.connection, buffer, sizeof buffer, MSG_DONTWAIT) == sizeof buffer) {
      side.in->data = buffer[1];
      std::atomic_thread_fence(std::memory_order_release);
      side.in->number = buffer[0];
    }
  }
}

void connectSides() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    std::abort();
  sides[0].connection = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(sides[0].connection, reinterpret_cast<sockaddr*>(&address), length) != 0) std::abort();
  sides[1].connection = accept(listener, nullptr, nullptr);
  const int yes = 1;
  for (const Side& side : sides) setsockopt(side.connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  close(listener);
}

// Microseconds for one of `count` operations that both sides enqueue without waiting.
template <class Enqueue>
double time(int count, Enqueue&& enqueue) {
  std::atomic<int> ready = 0;
  double took[2];
  auto run = [&](int index) {
    MUST(cudaSetDevice(index));
    ready++;
    while (ready < 2) {
    }
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; i++) enqueue(index);
    MUST(cudaStreamSynchronize(sides[index].stream));
    took[index] = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / count;
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  return std::max(took[0], took[1]);
}

void print(const char* name, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("%-44s median %6.2f µs, least %6.2f, most %6.2f\n", name, times[times.size() / 2], times.front(), times.back());
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  uint64_t* sums[2];
  connectSides();
  for (int index = 0; index < 2; index++) {
    MUST(cudaSetDevice(index));
    Side& side = sides[index];
    MUST(cudaHostAlloc(&side.out, sizeof(Line), cudaHostAllocPortable));
    MUST(cudaHostAlloc(&side.in, sizeof(Line), cudaHostAllocPortable));
    std::memset(side.out, 0, sizeof(Line));
    std::memset(side.in, 0, sizeof(Line));
    MUST(cudaStreamCreateWithFlags(&side.stream, cudaStreamNonBlocking));
    MUST(cudaMalloc(&sums[index], sizeof(uint64_t)));
    MUST(cudaMemset(sums[index], 0, sizeof(uint64_t)));
    MUST(cudaDeviceSynchronize());
  }
  std::thread threads[2] = {std::thread(progress, std::ref(sides[0])), std::thread(progress, std::ref(sides[1]))};
  uint64_t numbers[2] = {0, 0};
  auto exchanges = [&](int index) {
    exchange<<<1, 1, 0, sides[index].stream>>>(sides[index].out, sides[index].in, ++numbers[index], sums[index]);
  };
  auto empty = [&](int index) { nothing<<<1, 1, 0, sides[index].stream>>>(sums[index]); };
  std::vector<double> alone, both;
  for (int round = 0; round < rounds; round++) {
    alone.push_back(time(2000, empty));
    both.push_back(time(2000, exchanges));
  }
  print("a kernel that does nothing", alone);
  print("an exchange of 8 B over TCP between two GPUs", both);
  over = true;
  for (std::thread& thread : threads) thread.join();
}
