// Measures the least that an exchange between GPUs of two hosts takes over TCP without GPUDirect: a kernel writes a message to
// pinned host memory and waits for the peer's; a thread for each GPU, which does nothing else, sees the message, sends it over one
// connection of the loopback interface and puts what arrives into pinned memory that the kernel reads.
//   nvcc -O3 -std=c++20 -arch=sm_90 -o net_exchange net_exchange.cu && ./net_exchange [ROUNDS [BYTES...]]
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

#include "must.cuh"

namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr int kThreads = 512;

struct Message {
  alignas(64) volatile uint64_t number;
  uint64_t bytes;
  alignas(64) uint64_t data[kMaxBytes / sizeof(uint64_t)];
};

struct Side {
  int connection = -1;
  Message *out = nullptr, *in = nullptr;
  uint64_t* memory = nullptr;  // of the GPU: first what it sends, then what it receives
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

__global__ void exchange(Message* out, Message* in, uint64_t number, uint64_t bytes, uint64_t* memory) {
  const uint64_t words = bytes / sizeof(uint64_t);
  for (uint64_t i = threadIdx.x; i < words; i += blockDim.x) out->data[i] = memory[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    out->bytes = bytes;
    storeRelease(&out->number, number);
    while (loadAcquire(&in->number) < number) {
    }
  }
  __syncthreads();
  for (uint64_t i = threadIdx.x; i < words; i += blockDim.x) memory[words + i] = in->data[i];
}

__global__ void nothing(uint64_t* memory) { *memory += 1; }

// Both return early when all is over.
void sendWhole(int connection, const void* data, size_t bytes) {
  for (size_t sent = 0; sent < bytes && !over.load(std::memory_order_relaxed);) {
    const ssize_t n = send(connection, static_cast<const char*>(data) + sent, bytes - sent, MSG_DONTWAIT);
    if (n > 0) sent += n;
  }
}
void receiveWhole(int connection, void* data, size_t bytes) {
  for (size_t received = 0; received < bytes && !over.load(std::memory_order_relaxed);) {
    const ssize_t n = recv(connection, static_cast<char*>(data) + received, bytes - received, MSG_DONTWAIT);
    if (n > 0) received += n;
  }
}

// Up to a line a message is copied together with its header, so that one call sends it.
void progress(Side& side) {
  constexpr size_t kSmall = 64;
  struct {
    uint64_t number, bytes, data[kSmall / sizeof(uint64_t)];
  } small;
  uint64_t sent = 0;
  while (!over.load(std::memory_order_relaxed)) {
    const uint64_t number = side.out->number;
    if (number != sent) {
      std::atomic_thread_fence(std::memory_order_acquire);
      const size_t bytes = side.out->bytes, joined = bytes <= kSmall ? bytes : 0;
      small.number = sent = number;
      small.bytes = bytes;
      std::memcpy(small.data, side.out->data, joined);
      sendWhole(side.connection, &small, 16 + joined);
      sendWhole(side.connection, side.out->data, bytes - joined);
    }
    uint64_t header[2];
    if (recv(side.connection, header, sizeof header, MSG_DONTWAIT | MSG_PEEK) != sizeof header) continue;
    receiveWhole(side.connection, &small, 16);
    receiveWhole(side.connection, side.in->data, header[1]);
    std::atomic_thread_fence(std::memory_order_release);
    side.in->number = header[0];
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
  std::printf("%-36s median %6.2f µs, least %6.2f, most %6.2f\n", name, times[times.size() / 2], times.front(), times.back());
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  std::vector<uint64_t> sizes;
  for (int i = 2; i < argc; i++) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {8, 16 << 10, 64 << 10};
  connectSides();
  for (int index = 0; index < 2; index++) {
    MUST(cudaSetDevice(index));
    Side& side = sides[index];
    for (Message** message : {&side.out, &side.in}) {
      MUST(cudaHostAlloc(message, sizeof(Message), cudaHostAllocPortable));
      std::memset(*message, 0, sizeof(Message));
    }
    MUST(cudaStreamCreateWithFlags(&side.stream, cudaStreamNonBlocking));
    MUST(cudaMalloc(&side.memory, 2 * kMaxBytes));
    MUST(cudaMemset(side.memory, 0, 2 * kMaxBytes));
    MUST(cudaDeviceSynchronize());
  }
  std::thread threads[2] = {std::thread(progress, std::ref(sides[0])), std::thread(progress, std::ref(sides[1]))};
  auto empty = [&](int index) { nothing<<<1, 1, 0, sides[index].stream>>>(sides[index].memory); };
  std::vector<double> alone;
  for (int round = 0; round < rounds; round++) alone.push_back(time(2000, empty));
  print("a kernel that does nothing", alone);
  uint64_t numbers[2] = {0, 0};
  for (const uint64_t bytes : sizes) {
    if (bytes > kMaxBytes || bytes % sizeof(uint64_t) != 0) return 1;
    const int threadCount = bytes <= 64 ? 1 : kThreads;
    auto exchanges = [&](int index) {
      const Side& side = sides[index];
      exchange<<<1, threadCount, 0, side.stream>>>(side.out, side.in, ++numbers[index], bytes, side.memory);
    };
    std::vector<double> both;
    for (int round = 0; round < rounds; round++) both.push_back(time(1000, exchanges));
    char name[64];
    std::snprintf(name, sizeof name, "an exchange of %llu B over TCP", static_cast<unsigned long long>(bytes));
    print(name, both);
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
}
