// A communicator through the C interface: its whole life, its groups, its operations, its errors. The ranks are
// threads, or communicators that one thread holds; their plan is written by hand.
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "expect.h"
#include "ncclrun.h"
#include "support/plan_builder.h"

namespace {

constexpr uint32_t kRanks = 3;
constexpr double kAbortMilliseconds = 100;

// What the ranks of one communicator share.
struct Shared {
  std::vector<std::byte> plan;
  int segment;

  explicit Shared(uint32_t ranks) {
    using namespace ncclrun;
    plan = test::encode(test::oneHost(ranks, test::variant(plan::Algorithm::ring, 1, 4096)), 0);
    plan::Header header;
    std::memcpy(&header, plan.data(), sizeof header);
    segment = memfd_create("segment", MFD_CLOEXEC);
    EXPECT(segment >= 0 && ftruncate(segment, static_cast<off_t>(header.segmentBytes)) == 0);
  }
  ~Shared() { close(segment); }
  ncclResult_t join(ncclComm_t* comm, uint32_t rank) const {
    return ncclrunCommInitPlan(comm, plan.data(), plan.size(), segment, rank, -1);
  }
};

// All ranks in this thread, each with a stream of its own.
struct Together {
  Shared shared{kRanks};
  ncclComm_t comms[kRanks];
  ncclrunStream_t streams[kRanks];

  Together() {
    EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
    for (uint32_t rank = 0; rank < kRanks; rank++) EXPECT_RESULT(shared.join(&comms[rank], rank), ncclSuccess, "");
    EXPECT_RESULT(ncclGroupEnd(), ncclSuccess, "");
    for (auto& stream : streams) EXPECT_RESULT(ncclrunStreamCreate(&stream), ncclSuccess, "");
  }
  ~Together() {
    for (ncclComm_t comm : comms) ncclCommDestroy(comm);
    for (ncclrunStream_t stream : streams) ncclrunStreamDestroy(stream);
  }
  cudaStream_t stream(uint32_t rank) const { return reinterpret_cast<cudaStream_t>(streams[rank]); }
  // Calls `queue(rank, comm, stream)` for each rank in one group, then waits for all.
  template <typename Queue>
  void run(Queue&& queue) {
    EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
    for (uint32_t rank = 0; rank < kRanks; rank++)
      EXPECT_RESULT(queue(rank, comms[rank], stream(rank)), ncclSuccess, "");
    EXPECT_RESULT(ncclGroupEnd(), ncclSuccess, "");
    for (ncclrunStream_t one : streams) EXPECT_RESULT(ncclrunStreamSynchronize(one), ncclSuccess, "");
  }
};

using Vector = std::vector<int32_t>;

Vector numbers(size_t count, int32_t first) {
  Vector values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

void facts() {
  Together all;
  for (uint32_t rank = 0; rank < kRanks; rank++) {
    int number = -1;
    EXPECT_RESULT(ncclCommCount(all.comms[rank], &number), ncclSuccess, "");
    EXPECT(number == static_cast<int>(kRanks));
    EXPECT_RESULT(pncclCommUserRank(all.comms[rank], &number), ncclSuccess, "");
    EXPECT(number == static_cast<int>(rank));
    EXPECT_RESULT(ncclCommCuDevice(all.comms[rank], &number), ncclInvalidUsage, "host device");
    ncclrunCommInfo info;
    EXPECT_RESULT(ncclrunCommGetInfo(all.comms[rank], &info), ncclSuccess, "");
    EXPECT(info.rank == rank && info.size == kRanks && info.localRank == rank && info.localSize == kRanks);
    EXPECT(info.host == 0 && info.hosts == 1);
    const char* name = nullptr;
    EXPECT_RESULT(ncclrunCommHostName(all.comms[rank], 0, &name), ncclSuccess, "");
    EXPECT(name != nullptr && *name != '\0');
    EXPECT_RESULT(ncclrunCommHostName(all.comms[rank], 1, &name), ncclInvalidArgument, "no host 1");
    size_t nics = 0;
    EXPECT_RESULT(ncclrunCommGetNics(all.comms[rank], 0, nullptr, &nics), ncclSuccess, "");
    EXPECT(nics == 0);
    EXPECT_RESULT(ncclrunCommGetNics(all.comms[rank], 1, nullptr, &nics), ncclInvalidArgument, "no host 1");
    EXPECT_RESULT(ncclrunCommGetNics(all.comms[rank], 0, nullptr, nullptr), ncclInvalidArgument, "count is NULL");
    ncclResult_t state = ncclInternalError;
    EXPECT_RESULT(ncclCommGetAsyncError(all.comms[rank], &state), ncclSuccess, "");
    EXPECT(state == ncclSuccess);
    ncclrunVariant variant{};
    EXPECT_RESULT(ncclrunCommGetVariant(all.comms[rank], 0, 1 << 20, &variant), ncclSuccess, "");
    EXPECT(variant.channels == 1 && variant.threads >= 64 && variant.upToBytes >= 1 << 20);
    EXPECT_RESULT(ncclrunCommGetVariant(all.comms[rank], 99, 8, &variant), ncclInvalidUsage, "no variant");
    EXPECT_RESULT(ncclrunCommGetVariant(all.comms[rank], 0, 8, nullptr), ncclInvalidArgument, "variant is NULL");
    size_t count = 0;
    EXPECT_RESULT(ncclrunCommGetEdges(all.comms[rank], nullptr, &count), ncclSuccess, "");
    EXPECT(count == 2);  // a ring: one edge out, one in
    ncclrunEdge edges[2];
    count = 1;
    EXPECT_RESULT(ncclrunCommGetEdges(all.comms[rank], edges, &count), ncclSuccess, "");
    EXPECT(count == 2);
  }
}

// Each rank's own scalar, read when the operator is made or when the operation runs.
void operators() {
  Together all;
  std::vector<ncclRedOp_t> now(kRanks), later(kRanks);
  std::vector<float> factors(kRanks), values(kRanks), sums(kRanks);
  for (uint32_t rank = 0; rank < kRanks; rank++) {
    factors[rank] = float(rank + 1);
    values[rank] = float(10 * (rank + 1));
    EXPECT_RESULT(
        ncclRedOpCreatePreMulSum(&now[rank], &factors[rank], ncclFloat32, ncclScalarHostImmediate, all.comms[rank]),
        ncclSuccess, "");
    EXPECT_RESULT(
        ncclRedOpCreatePreMulSum(&later[rank], &factors[rank], ncclFloat32, ncclScalarDevice, all.comms[rank]),
        ncclSuccess, "");
    EXPECT(now[rank] >= ncclNumOps && later[rank] > now[rank]);
    factors[rank] = 2;
  }
  for (const auto& [ops, expected] : {std::pair(&now, 140.f), std::pair(&later, 120.f)}) {
    all.run([&](uint32_t rank, ncclComm_t comm, cudaStream_t stream) {
      return ncclAllReduce(&values[rank], &sums[rank], 1, ncclFloat32, (*ops)[rank], comm, stream);
    });
    for (const float sum : sums) EXPECT(sum == expected);
  }
  EXPECT_RESULT(ncclAllReduce(values.data(), sums.data(), 1, ncclInt32, now[0], all.comms[0], nullptr),
                ncclInvalidArgument, "was made for datatype 7, the call has datatype 2");
  EXPECT_RESULT(ncclRedOpDestroy(now[0], all.comms[0]), ncclSuccess, "");
  EXPECT_RESULT(ncclRedOpDestroy(now[0], all.comms[0]), ncclInvalidArgument, "was destroyed before");
  EXPECT_RESULT(ncclRedOpDestroy(ncclSum, all.comms[0]), ncclInvalidArgument, "NCCL's own");
  EXPECT_RESULT(ncclAllReduce(values.data(), sums.data(), 1, ncclFloat32, now[0], all.comms[0], nullptr),
                ncclInvalidArgument, "operator 5 does not exist");
  ncclRedOp_t again;
  EXPECT_RESULT(ncclRedOpCreatePreMulSum(&again, nullptr, ncclFloat32, ncclScalarDevice, all.comms[0]),
                ncclInvalidArgument, "scalar is NULL");
  EXPECT_RESULT(ncclRedOpCreatePreMulSum(nullptr, factors.data(), ncclFloat32, ncclScalarDevice, all.comms[0]),
                ncclInvalidArgument, "op is NULL");
}

void wrongArguments() {
  Together all;
  const ncclComm_t comm = all.comms[0];
  int32_t value = 0;
  const auto noType = static_cast<ncclDataType_t>(ncclNumTypes);
  const auto noOperator = static_cast<ncclRedOp_t>(ncclNumOps);
  EXPECT_RESULT(ncclAllReduce(nullptr, &value, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument,
                "ncclAllReduce: sendbuff is NULL, count is 1");
  EXPECT_RESULT(ncclAllReduce(&value, nullptr, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument, "recvbuff");
  EXPECT_RESULT(ncclAllReduce(&value, &value, 1, noType, ncclSum, comm, nullptr), ncclInvalidArgument, "datatype 12");
  EXPECT_RESULT(ncclAllReduce(&value, &value, 1, ncclInt32, noOperator, comm, nullptr), ncclInvalidArgument,
                "operator 5");
  EXPECT_RESULT(ncclAllReduce(&value, &value, SIZE_MAX / 2, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument,
                "more than memory can hold");
  for (const int outside : {-1, static_cast<int>(kRanks)}) {
    EXPECT_RESULT(ncclSend(&value, 1, ncclInt32, outside, comm, nullptr), ncclInvalidArgument, "has ranks 0 to 2");
    EXPECT_RESULT(ncclRecv(&value, 1, ncclInt32, outside, comm, nullptr), ncclInvalidArgument, "ncclRecv: peer");
    EXPECT_RESULT(ncclBcast(&value, 1, ncclInt32, outside, comm, nullptr), ncclInvalidArgument, "ncclBcast: root");
    EXPECT_RESULT(ncclReduce(&value, &value, 1, ncclInt32, ncclSum, outside, comm, nullptr), ncclInvalidArgument,
                  "root");
  }
  // Only the root's buffers are looked at.
  EXPECT_RESULT(ncclBroadcast(nullptr, &value, 1, ncclInt32, 0, comm, nullptr), ncclInvalidArgument, "sendbuff");
  EXPECT_RESULT(ncclReduce(&value, nullptr, 1, ncclInt32, ncclSum, 0, comm, nullptr), ncclInvalidArgument, "recvbuff");
  // One wrong call, and the group queues none: the other ranks would wait for ever for half a group.
  EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
  EXPECT_RESULT(ncclRecv(&value, 1, ncclInt32, 1, comm, all.stream(0)), ncclSuccess, "");
  EXPECT_RESULT(ncclRecv(nullptr, 1, ncclInt32, 1, comm, all.stream(0)), ncclInvalidArgument, "recvbuff");
  EXPECT_RESULT(ncclGroupEnd(), ncclInvalidArgument, "recvbuff");
  EXPECT_RESULT(ncclrunStreamSynchronize(all.streams[0]), ncclSuccess, "");
}

void collectives() {
  constexpr size_t kCount = 1000;
  Together all;
  std::vector<Vector> send(kRanks);
  std::vector<Vector> receive(kRanks, Vector(kCount * kRanks));
  for (uint32_t rank = 0; rank < kRanks; rank++)
    send[rank] = numbers(kCount * kRanks, 100000 * static_cast<int32_t>(rank));
  const auto sum = [&](size_t i) { return send[0][i] + send[1][i] + send[2][i]; };

  all.run([&](uint32_t rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclAllReduce(send[rank].data(), receive[rank].data(), kCount, ncclInt32, ncclSum, comm, stream);
  });
  for (const Vector& got : receive) {
    for (size_t i = 0; i < kCount; i++) EXPECT(got[i] == sum(i));
  }
  all.run([&](uint32_t rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclAllGather(send[rank].data(), receive[rank].data(), kCount, ncclInt32, comm, stream);
  });
  for (const Vector& got : receive) {
    for (size_t i = 0; i < got.size(); i++) EXPECT(got[i] == send[i / kCount][i % kCount]);
  }
  all.run([&](uint32_t rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclReduceScatter(send[rank].data(), receive[rank].data(), kCount, ncclInt32, ncclSum, comm, stream);
  });
  for (uint32_t rank = 0; rank < kRanks; rank++) {
    for (size_t i = 0; i < kCount; i++) EXPECT(receive[rank][i] == sum(rank * kCount + i));
  }
  for (int root = 0; root < static_cast<int>(kRanks); root++) {
    all.run([&](uint32_t rank, ncclComm_t comm, cudaStream_t stream) {
      const void* from = static_cast<int>(rank) == root ? send[rank].data() : nullptr;
      return ncclBroadcast(from, receive[rank].data(), kCount, ncclInt32, root, comm, stream);
    });
    for (const Vector& got : receive) EXPECT(std::equal(got.begin(), got.begin() + kCount, send[root].begin()));
    all.run([&](uint32_t rank, ncclComm_t comm, cudaStream_t stream) {
      void* to = static_cast<int>(rank) == root ? receive[rank].data() : nullptr;
      return ncclReduce(send[rank].data(), to, kCount, ncclInt32, ncclSum, root, comm, stream);
    });
    for (size_t i = 0; i < kCount; i++) EXPECT(receive[root][i] == sum(i));
  }
  all.run([&](uint32_t rank, ncclComm_t comm, cudaStream_t) { return ncclrunBarrier(comm, all.streams[rank]); });
  // No element: no buffer is needed.
  all.run([&](uint32_t, ncclComm_t comm, cudaStream_t stream) {
    return ncclAllReduce(nullptr, nullptr, 0, ncclInt32, ncclSum, comm, stream);
  });
}

// Every rank sends far more than all buffers hold to every rank, itself included, in nested groups.
void exchange() {
  constexpr size_t kCount = 300000;
  Together all;
  std::vector<Vector> receive(kRanks * kRanks, Vector(kCount));
  std::vector<Vector> send(kRanks * kRanks);
  for (uint32_t i = 0; i < kRanks * kRanks; i++) send[i] = numbers(kCount, static_cast<int32_t>(i) * 1000003);
  all.run([&](uint32_t rank, ncclComm_t comm, cudaStream_t stream) {
    EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
    for (uint32_t peer = 0; peer < kRanks; peer++) {
      const uint32_t there = rank * kRanks + peer;
      EXPECT_RESULT(ncclSend(send[there].data(), kCount, ncclInt32, static_cast<int>(peer), comm, stream), ncclSuccess,
                    "");
      EXPECT_RESULT(ncclRecv(receive[there].data(), kCount, ncclInt32, static_cast<int>(peer), comm, stream),
                    ncclSuccess, "");
      EXPECT_RESULT(ncclSend(nullptr, 0, ncclInt32, static_cast<int>(peer), comm, stream), ncclSuccess, "");
      EXPECT_RESULT(ncclRecv(nullptr, 0, ncclInt32, static_cast<int>(peer), comm, stream), ncclSuccess, "");
    }
    return ncclGroupEnd();
  });
  for (uint32_t rank = 0; rank < kRanks; rank++) {
    for (uint32_t peer = 0; peer < kRanks; peer++) EXPECT(receive[rank * kRanks + peer] == send[peer * kRanks + rank]);
  }
}

void lifeAndEnd() {
  Together all;
  int32_t value = 1;
  all.run([&](uint32_t, ncclComm_t comm, cudaStream_t stream) {
    return ncclAllReduce(&value, &value, 0, ncclInt32, ncclSum, comm, stream);
  });
  const ncclComm_t comm = all.comms[0];
  EXPECT_RESULT(ncclCommFinalize(comm), ncclSuccess, "");
  ncclResult_t state;
  EXPECT_RESULT(ncclCommGetAsyncError(comm, &state), ncclSuccess, "");
  EXPECT(state == ncclSuccess);
  EXPECT_RESULT(ncclCommFinalize(comm), ncclInvalidUsage, "finalized before");
  EXPECT_RESULT(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidUsage, "was finalized");
  EXPECT_RESULT(ncclrunNodeBarrier(comm), ncclInvalidUsage, "was finalized");
  EXPECT_RESULT(ncclCommDestroy(comm), ncclSuccess, "");
  EXPECT_RESULT(ncclCommDestroy(comm), ncclInvalidArgument, "no communicator");
  EXPECT_RESULT(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument,
                "no communicator");
  all.comms[0] = nullptr;
}

// A rank waits for a peer that never comes; another thread aborts.
void abortWhileRunning() {
  Together all;
  int32_t value = 0;
  EXPECT_RESULT(ncclRecv(&value, 1, ncclInt32, 1, all.comms[0], all.stream(0)), ncclSuccess, "");
  std::atomic<bool> waiting{false};
  std::thread waiter([&] {
    waiting = true;
    EXPECT_RESULT(ncclrunStreamSynchronize(all.streams[0]), ncclInvalidUsage, "rank 0 of 3 called ncclCommAbort");
  });
  std::thread barrier([&] {
    // It needs rank 0, which aborts; its own abort may come first, even before the call.
    const ncclResult_t result = ncclrunNodeBarrier(all.comms[1]);
    EXPECT(result == ncclRemoteError || result == ncclInvalidUsage || result == ncclInvalidArgument);
  });
  while (!waiting) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_RESULT(ncclCommAbort(all.comms[0]), ncclSuccess, "");
  waiter.join();
  EXPECT(millisecondsSince(start) < kAbortMilliseconds);
  EXPECT_RESULT(ncclCommAbort(all.comms[1]), ncclSuccess, "");
  barrier.join();
  all.comms[0] = all.comms[1] = nullptr;
}

// Finalize waits for what is queued; an abort ends that wait.
void abortWhileFinalizing() {
  Together all;
  int32_t value = 0;
  EXPECT_RESULT(ncclRecv(&value, 1, ncclInt32, 1, all.comms[0], all.stream(0)), ncclSuccess, "");
  std::thread finalizing(
      [comm = all.comms[0]] { EXPECT_RESULT(ncclCommFinalize(comm), ncclInvalidUsage, "ncclCommAbort"); });
  ncclResult_t state = ncclSuccess;
  while (state != ncclInProgress) EXPECT_RESULT(ncclCommGetAsyncError(all.comms[0], &state), ncclSuccess, "");
  EXPECT_RESULT(ncclCommAbort(all.comms[0]), ncclSuccess, "");
  finalizing.join();
  all.comms[0] = nullptr;
}

// Threads that each own a rank, others that look at all of them, while communicators come and go.
void manyThreads() {
  constexpr int kIterations = 20;
  std::atomic<bool> stop{false};
  ncclComm_t comms[kRanks] = {};
  std::thread observer([&] {
    while (!stop) {
      for (ncclComm_t& slot : comms) {
        int number;
        ncclResult_t state;
        const ncclComm_t comm = __atomic_load_n(&slot, __ATOMIC_ACQUIRE);
        ncclCommCount(comm, &number);
        ncclCommGetAsyncError(comm, &state);
        ncclGetLastError(comm);
      }
    }
  });
  for (int iteration = 0; iteration < kIterations; iteration++) {
    const Shared shared(kRanks);
    std::vector<std::thread> ranks;
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      ranks.emplace_back([&, rank] {
        ncclComm_t comm;
        EXPECT_RESULT(shared.join(&comm, rank), ncclSuccess, "");
        __atomic_store_n(&comms[rank], comm, __ATOMIC_RELEASE);
        ncclrunStream_t stream;
        EXPECT_RESULT(ncclrunStreamCreate(&stream), ncclSuccess, "");
        int32_t values[64] = {};
        for (int& value : values) value = static_cast<int32_t>(rank) + 1;
        for (int i = 0; i < 3; i++) {
          EXPECT_RESULT(
              ncclAllReduce(values, values, 64, ncclInt32, ncclSum, comm, reinterpret_cast<cudaStream_t>(stream)),
              ncclSuccess, "");
        }
        EXPECT_RESULT(ncclrunStreamSynchronize(stream), ncclSuccess, "");
        for (const int value : values) EXPECT(value == 6 * 3 * 3);
        EXPECT_RESULT(ncclrunNodeBarrier(comm), ncclSuccess, "");
        EXPECT_RESULT(ncclCommDestroy(comm), ncclSuccess, "");
        EXPECT_RESULT(ncclrunStreamDestroy(stream), ncclSuccess, "");
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }
  stop = true;
  observer.join();
}

void badPlans() {
  Shared shared(kRanks);
  ncclComm_t comm;
  EXPECT_RESULT(shared.join(&comm, kRanks), ncclInvalidArgument, "rank 3");
  for (const size_t bytes : {size_t{0}, size_t{100}, shared.plan.size() - 1}) {
    EXPECT(ncclrunCommInitPlan(&comm, shared.plan.data(), bytes, shared.segment, 0, -1) == ncclInvalidArgument);
    EXPECT(comm == nullptr && *ncclGetLastError(nullptr) != '\0');
  }
  EXPECT(ncclrunCommInitPlan(&comm, shared.plan.data(), shared.plan.size(), -1, 0, -1) != ncclSuccess &&
         comm == nullptr);
}

}  // namespace

int main() {
  alarm(120);  // a hang ends as a failure
  facts();
  operators();
  wrongArguments();
  collectives();
  exchange();
  lifeAndEnd();
  abortWhileRunning();
  abortWhileFinalizing();
  badPlans();
  manyThreads();
  return 0;
}
