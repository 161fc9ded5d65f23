// What the interface says to wrong arguments and wrong moments, without a communicator; and that each thread has its
// own group and its own last error.
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "expect.h"
#include "ncclrun.h"

namespace {

const auto kForeign = reinterpret_cast<ncclComm_t>(0x7000);

void foreignCommunicators() {
  char buffer[8] = {};
  int number = 0;
  size_t edges = 0;
  const char* name = nullptr;
  ncclResult_t state;
  ncclrunCommInfo info;
  ncclrunVariant variant;
  for (const ncclComm_t comm : {ncclComm_t{nullptr}, kForeign}) {
    const char* words = comm == nullptr ? "comm is NULL" : "0x7000 is no communicator of this process";
    EXPECT_RESULT(ncclAllReduce(buffer, buffer, 1, ncclInt8, ncclSum, comm, nullptr), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclSend(buffer, 1, ncclInt8, 0, comm, nullptr), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclRecv(buffer, 1, ncclInt8, 0, comm, nullptr), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclrunBarrier(comm, nullptr), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclrunNodeBarrier(comm), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclCommCount(comm, &number), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclCommUserRank(comm, &number), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclCommCuDevice(comm, &number), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclCommGetAsyncError(comm, &state), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclrunCommGetInfo(comm, &info), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclrunCommHostName(comm, 0, &name), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclrunCommGetEdges(comm, nullptr, &edges), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclrunCommGetVariant(comm, 0, 8, &variant), ncclInvalidArgument, words);
    EXPECT_RESULT(ncclrunCommChooseAs(comm, 8), ncclInvalidArgument, words);
  }
  // NULL is "nothing to end", as in NCCL.
  EXPECT_RESULT(ncclCommFinalize(nullptr), ncclSuccess, "");
  EXPECT_RESULT(ncclCommDestroy(nullptr), ncclSuccess, "");
  EXPECT_RESULT(ncclCommAbort(nullptr), ncclSuccess, "");
  EXPECT_RESULT(ncclCommFinalize(kForeign), ncclInvalidArgument, "no communicator");
  EXPECT_RESULT(ncclCommDestroy(kForeign), ncclInvalidArgument, "no communicator");
  EXPECT_RESULT(ncclCommAbort(kForeign), ncclInvalidArgument, "no communicator");
}

void joining() {
  ncclUniqueId id;
  ncclComm_t comm;
  EXPECT_RESULT(ncclGetUniqueId(nullptr), ncclInvalidArgument, "uniqueId is NULL");
  EXPECT_RESULT(ncclGetUniqueId(&id), ncclSuccess, "");
  EXPECT_RESULT(ncclGetVersion(nullptr), ncclInvalidArgument, "version is NULL");
  EXPECT_RESULT(ncclCommInitRank(nullptr, 1, id, 0), ncclInvalidArgument, "comm is NULL");
  for (const auto& [size, rank] : {std::pair(0, 0), {-1, 0}, {2, 2}, {2, -1}}) {
    comm = kForeign;
    EXPECT_RESULT(ncclCommInitRank(&comm, size, id, rank), ncclInvalidArgument, "ranks go from 0 to nranks - 1");
    EXPECT(comm == nullptr);
  }
  ncclConfig_t config{};
  EXPECT_RESULT(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument, "NCCL_CONFIG_INITIALIZER");
  setenv("NCCLRUN_DEVICE", "cuda", 1);
  EXPECT_RESULT(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidUsage, "NCCLRUN_DEVICE=cuda");
  unsetenv("NCCLRUN_DEVICE");
  EXPECT_RESULT(ncclrunCommInitPlan(&comm, nullptr, 0, -1, 0, -1), ncclInvalidArgument, "plan is NULL");
  EXPECT_RESULT(ncclrunCommInitPlan(&comm, "no plan", 7, -1, 0, -1), ncclInvalidArgument, "ncclrunCommInitPlan");
  EXPECT(comm == nullptr);
}

// Programs keep the pointer.
void lastErrorStays() {
  EXPECT_RESULT(ncclCommCount(nullptr, nullptr), ncclInvalidArgument, "comm is NULL");
  const char* const own = ncclGetLastError(nullptr);
  EXPECT_RESULT(ncclCommCount(kForeign, nullptr), ncclInvalidArgument, "no communicator");
  EXPECT(std::strlen(own) > 0 && own == ncclGetLastError(nullptr));
  std::set<const char*> all;
  for (int i = 0; i < 100; i++) {
    const char* ofThread = nullptr;
    std::thread thread([&ofThread] {
      EXPECT_RESULT(ncclGroupEnd(), ncclInvalidUsage, "no ncclGroupStart");
      ofThread = ncclGetLastError(nullptr);
    });
    thread.join();
    EXPECT(std::strstr(ofThread, "no ncclGroupStart") != nullptr);
    all.insert(ofThread);
  }
  EXPECT(all.size() == 1);  // the memory of a thread that has ended serves the next one
  std::thread silent([] { EXPECT(std::strstr(ncclGetLastError(nullptr), "no ncclGroupStart") != nullptr); });
  silent.join();
}

void groups() {
  EXPECT_RESULT(ncclGroupEnd(), ncclInvalidUsage, "no ncclGroupStart");
  EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
  EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
  EXPECT_RESULT(ncclrunBarrier(kForeign, nullptr), ncclInvalidArgument, "no communicator");
  EXPECT_RESULT(ncclCommCount(kForeign, nullptr), ncclInvalidArgument, "no communicator");  // not the group's
  EXPECT_RESULT(ncclGroupEnd(), ncclSuccess, "");
  std::thread other([] {
    EXPECT_RESULT(ncclGroupEnd(), ncclInvalidUsage, "no ncclGroupStart");  // the other thread's group is not ours
    EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
    EXPECT_RESULT(ncclGroupEnd(), ncclSuccess, "");
  });
  other.join();
  EXPECT_RESULT(ncclGroupEnd(), ncclInvalidArgument, "ncclrunBarrier: comm 0x7000");
  EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");  // the next group starts clean
  EXPECT_RESULT(ncclGroupEnd(), ncclSuccess, "");
}

// A set-up that a failed group never begins leaves no communicator behind.
void failedGroupOfInits() {
  ncclUniqueId id;
  EXPECT_RESULT(ncclGetUniqueId(&id), ncclSuccess, "");
  ncclComm_t comm = nullptr;
  EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
  EXPECT_RESULT(ncclCommInitRank(&comm, 2, id, 0), ncclSuccess, "");
  const ncclComm_t early = comm;
  ncclComm_t none;
  EXPECT_RESULT(ncclCommInitRank(&none, 2, id, 2), ncclInvalidArgument, "rank 2 of 2");
  EXPECT_RESULT(ncclGroupEnd(), ncclInvalidArgument, "rank 2 of 2");
  EXPECT(comm == nullptr);
  EXPECT_RESULT(ncclCommAbort(early), ncclInvalidArgument, "no communicator");
}

void lastErrors() {
  EXPECT_RESULT(ncclGetVersion(nullptr), ncclInvalidArgument, "version is NULL");
  std::thread([] {  // a thread without errors of its own is told the process's last
    EXPECT(std::strstr(ncclGetLastError(nullptr), "version is NULL") != nullptr);
    EXPECT_RESULT(ncclGetUniqueId(nullptr), ncclInvalidArgument, "uniqueId is NULL");
  })
      .join();
  EXPECT(std::strstr(ncclGetLastError(nullptr), "version is NULL") != nullptr);
  EXPECT(std::strstr(pncclGetLastError(kForeign), "version is NULL") != nullptr);
  for (int code = 0; code <= ncclNumResults; code++) {
    EXPECT(*ncclGetErrorString(static_cast<ncclResult_t>(code)) != '\0');
  }
}

void manyThreads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; i++) {
    threads.emplace_back([i] {
      const auto comm = reinterpret_cast<ncclComm_t>(static_cast<uintptr_t>(0x1000 + i));
      char own[32];
      std::snprintf(own, sizeof own, "comm %p", static_cast<void*>(comm));
      for (int iteration = 0; iteration < 500; iteration++) {
        EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
        EXPECT_RESULT(ncclrunBarrier(comm, nullptr), ncclInvalidArgument, own);
        EXPECT_RESULT(ncclGroupEnd(), ncclInvalidArgument, own);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void memory() {
  void* pages = nullptr;
  EXPECT_RESULT(ncclMemAlloc(nullptr, 1), ncclInvalidArgument, "ncclMemAlloc: ptr is NULL");
  EXPECT_RESULT(ncclMemAlloc(&pages, ~size_t(0) / 2), ncclSystemError, "the system gives no 9223372036854775807 bytes");
  EXPECT_RESULT(ncclMemAlloc(&pages, 10000), ncclSuccess, "");
  auto* bytes = static_cast<unsigned char*>(pages);
  for (size_t i = 0; i < 10000; i++) bytes[i] = static_cast<unsigned char>(bytes[i] + i);
  EXPECT_RESULT(ncclMemFree(bytes + 1), ncclInvalidArgument, "did not come from ncclMemAlloc");
  EXPECT_RESULT(ncclMemFree(pages), ncclSuccess, "");
  EXPECT_RESULT(ncclMemFree(pages), ncclInvalidArgument, "or was freed before");
  EXPECT_RESULT(ncclMemAlloc(&pages, 0), ncclSuccess, "");
  EXPECT_RESULT(pages == nullptr ? ncclSuccess : ncclInternalError, ncclSuccess, "");
  EXPECT_RESULT(ncclMemFree(nullptr), ncclSuccess, "");
}

}  // namespace

int main() {
  unsetenv("NCCLRUN_AGENT");
  foreignCommunicators();
  joining();
  groups();
  failedGroupOfInits();
  lastErrors();
  lastErrorStays();
  manyThreads();
  memory();
  return 0;
}
