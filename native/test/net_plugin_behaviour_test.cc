// How the adapter takes what plugins do, in every version of the interface. The double (net/double) does what plant()
// asks for.
#include <signal.h>

#include <filesystem>
#include <thread>

#include "nccl.h"
#include "net/device_memory.h"
#include "net/plugin/attempt_pool.h"
#include "net/plugin_pair.h"

using namespace ncclrun::test;
using ncclrun::Status;
using ncclrun::net::DeviceRegistration;
using ncclrun::net::plugin::AttemptPool;

namespace {

bool everyVersion(const char* behaviour, void (*body)(Pair&)) {
  bool isFine = true;
  for (int version = 6; version <= 12; version++) {
    const std::string name = "double-v" + std::to_string(version);
    isFine &= scenario((name + " " + behaviour).c_str(), [&] {
      plant(behaviour);
      const auto pair = establishedPair(name);
      body(*pair);
    });
  }
  return isFine;
}

void someSizes(Pair& pair) {
  for (const size_t bytes : {0u, 1u, 4095u, 65'536u}) transfer(pair, bytes, bytes + 3, unsigned(bytes));
}
void exactSizes(Pair& pair) {
  for (const size_t bytes : {0u, 1u, 4095u, 65'536u}) transfer(pair, bytes, bytes, unsigned(bytes));
}

// Many messages at once, in groups where the device has them.
void manyAtOnce(Pair& pair) {
  constexpr size_t kMessages = 64, kBytes = 3001;
  const size_t group = pair.network->devices()[0].maxReceives;
  Memory from(*pair.sender, kMessages * kBytes), to(*pair.receiver, kMessages * kBytes);
  fill(from.bytes, 9);
  std::vector<ncclrun::net::Request*> sends, receives;
  size_t sent = 0, received = 0, posted = 0;
  while (sent < kMessages || received < kMessages / group) {
    ncclrun::net::Request* request = nullptr;
    if (posted < kMessages) {
      std::vector<Buffer> buffers;
      for (size_t i = 0; i < group; i++)
        buffers.push_back({to.bytes.data() + (posted + i) * kBytes, kBytes, int(i), to.registration});
      OK(pair.receiver->irecv(buffers, request));
      if (request != nullptr) receives.push_back(request), posted += group;
    }
    if (sends.size() < kMessages) {
      // The last of a group is sent first.
      const size_t in = sends.size() % group, at = sends.size() - in + (group - 1 - in);
      OK(pair.sender->isend(from.bytes.data() + at * kBytes, kBytes, int(group - 1 - in), from.registration, request));
      if (request != nullptr) sends.push_back(request);
    }
    bool done = false;
    size_t sizes[8] = {};
    if (sent < sends.size()) OK(pair.sender->test(sends[sent], done, {}));
    sent += done;
    done = false;
    if (received < receives.size()) OK(pair.receiver->test(receives[received], done, {sizes, group}));
    if (done) EXPECT(sizes[0] == kBytes && sizes[group - 1] == kBytes);
    received += done;
  }
  EXPECT(std::memcmp(from.bytes.data(), to.bytes.data(), kMessages * kBytes) == 0);
}

void handshakesThatTakeLong(Pair& pair) {
  EXPECT(pair.count("connect") >= 6 && pair.count("accept") >= 6);
  someSizes(pair);
}

void requestsThatAreRefused(Pair& pair) {
  manyAtOnce(pair);
  EXPECT(pair.count("refused") > 0);
}

void oneCompletesBeforeAnother(Pair& pair) {
  manyAtOnce(pair);
  EXPECT(pair.count("other-first") > 0);
}

void aFlushMakesDataVisible(Pair& pair) {
  EXPECT(pair.network->devices()[0].deviceMemory);
  Memory from(*pair.sender, 1000), to(*pair.receiver, 1000, ncclrun::net::MemoryType::device);
  fill(from.bytes, 4);
  ncclrun::net::Request *sending = nullptr, *receiving = nullptr, *flush = nullptr;
  const Buffer group[] = {{to.bytes.data(), 1000, 0, to.registration}};
  OK(pair.receiver->irecv(group, receiving));
  OK(pair.sender->isend(from.bytes.data(), 1000, 0, from.registration, sending));
  OK(await(*pair.sender, sending));
  OK(await(*pair.receiver, receiving));
  // A receive that is not complete does not delay the flush.
  ncclrun::net::Request* later = nullptr;
  OK(pair.receiver->irecv(group, later));
  EXPECT(std::memcmp(from.bytes.data(), to.bytes.data(), 1000) != 0);
  OK(pair.receiver->iflush(group, flush));
  if (flush != nullptr) OK(await(*pair.receiver, flush));
  EXPECT(std::memcmp(from.bytes.data(), to.bytes.data(), 1000) == 0 && pair.count("flush") == 1);
}

void hostMemoryIsNotFlushed(Pair& pair) {
  Memory to(*pair.receiver, 100);
  const Buffer group[] = {{to.bytes.data(), 100, 0, to.registration}};
  ncclrun::net::Request* flush = nullptr;
  OK(pair.receiver->iflush(group, flush));
  EXPECT(flush == nullptr);
  Registration registration;
  REFUSED(pair.receiver->registerMemory({to.bytes.data(), 100, ncclrun::net::MemoryType::device}, registration),
          ncclInvalidUsage, "does not register GPU memory");
}

void gpuMemoryThatIsRefused(Pair& pair) {
  std::vector<char> bytes(100);
  Registration registration;
  REFUSED(pair.sender->registerMemory({bytes.data(), 100, ncclrun::net::MemoryType::device}, registration),
          ncclInvalidUsage,
          "regMr: invalid usage (5); its last warning: nvidia_peermem is not loaded (100 bytes of GPU memory)");
}

ncclrun::net::Region regionOf(std::vector<char>& bytes, int dmaBuf) {
  return {bytes.data(), bytes.size(), ncclrun::net::MemoryType::device, dmaBuf, 0};
}

void aDmaBufThatIsRefused(Pair& pair) {
  std::vector<char> bytes(100);
  const ncclrun::net::Device& device = pair.network->devices()[0];
  EXPECT(device.dmaBuf);
  Registration registration;
  REFUSED(pair.sender->registerMemory(regionOf(bytes, 0), registration), ncclSystemError,
          "regMrDmaBuf: system error (2); its last warning: no dma-buf (100 bytes of GPU memory)");
  DeviceRegistration how;
  OK(registerDeviceMemory(*pair.sender, device, regionOf(bytes, 0), registration, how));
  REFUSED(how.refused, ncclSystemError, "no dma-buf");
  EXPECT(!how.byDmaBuf && pair.count("regMr") == 1 && pair.count("regMrDmaBuf") == 0);
  OK(pair.sender->deregisterMemory(registration));
}

void aDmaBufThatIsTaken(Pair& pair) {
  std::vector<char> bytes(100);
  Registration registration;
  DeviceRegistration how;
  OK(registerDeviceMemory(*pair.sender, pair.network->devices()[0], regionOf(bytes, 0), registration, how));
  EXPECT(how.byDmaBuf && how.refused.ok() && pair.count("regMrDmaBuf") == 1);
  OK(pair.sender->deregisterMemory(registration));
}

void gpuMemoryThatIsRefusedEitherWay(Pair& pair) {
  std::vector<char> bytes(100);
  Registration registration;
  DeviceRegistration how;
  const Status status =
      registerDeviceMemory(*pair.sender, pair.network->devices()[0], regionOf(bytes, 0), registration, how);
  REFUSED(status, ncclInvalidUsage, "nvidia_peermem is not loaded");
  REFUSED(status, ncclInvalidUsage, "; before, by a dma-buf: ");
  EXPECT(!how.byDmaBuf);
}

Status loopOf(Pair& pair, bool flushes) {
  std::vector<char> bytes(4096);
  DeviceRegistration how;
  constexpr uint64_t kTimeout = 300'000'000;
  Status status = testLoop(*pair.network, 0,
                           {.region = regionOf(bytes, -1), .flushes = flushes, .timeoutNanoseconds = kTimeout}, how);
  EXPECT(pair.count("regions-at-close") == 0);
  return status;
}

void aLoopThatCarriesGpuMemory(Pair& pair) {
  OK(loopOf(pair, true));
  EXPECT(pair.count("flush") == 1 && pair.count("received-into-gpu") == 1 && pair.count("open-at-close") == 0);
  OK(loopOf(pair, false));
  EXPECT(pair.count("flush") == 1);
}

void aLoopThatReportsNoSizes(Pair& pair) {
  REFUSED(loopOf(pair, false), ncclInvalidUsage, "it reports 64 bytes of a message of 8");
}

void aLoopThatRegistersNothing(Pair& pair) {
  REFUSED(loopOf(pair, false), ncclInvalidUsage, "nvidia_peermem is not loaded");
}

void aLoopThatCannotFlush(Pair& pair) {
  REFUSED(loopOf(pair, true), ncclSystemError, "iflush: system error (2)");
  OK(loopOf(pair, false));
}

void aLoopThatLosesWhatIsSent(Pair& pair) {
  REFUSED(loopOf(pair, false), ncclSystemError, "a message to itself takes too long");
}

void twoRegions(Pair& pair) {
  Memory one(*pair.sender, 10), two(*pair.sender, 10);
  Registration registration;
  REFUSED(pair.sender->registerMemory({one.bytes.data(), 10}, registration), ncclSystemError, "no more regions");
}

void longMessages(Pair& pair) {
  const ncclrun::net::Device& device = pair.network->devices()[0];
  // Versions before 9 have no limit of their own.
  const bool hasLimit = device.maxMessageBytes == 65'536;
  EXPECT(hasLimit || device.maxMessageBytes == uint64_t(1) << 30);
  transfer(pair, 65'536, 65'536, 1);
  if (!hasLimit) return;
  std::vector<char> bytes(65'537);
  ncclrun::net::Request* request = nullptr;
  REFUSED(pair.sender->isend(bytes.data(), bytes.size(), 0, {}, request), ncclInvalidArgument,
          "sends messages of at most 65536 bytes, not 65537");
}

void aFailedTest(Pair& pair) {
  Memory to(*pair.receiver, 10);
  const Buffer group[] = {{to.bytes.data(), 10, 0, to.registration}};
  ncclrun::net::Request* request = nullptr;
  OK(pair.receiver->irecv(group, request));
  const char* const words = "test: remote error (6); its last warning: retry counter exceeded, vendor error 129";
  REFUSED(await(*pair.receiver, request), ncclRemoteError, words);
  // The plugin aborts if it is called again.
  REFUSED(pair.receiver->irecv(group, request), ncclRemoteError, words);
  EXPECT(request == nullptr);
}

void aSystemError(Pair& pair) {
  Memory from(*pair.sender, 10);
  ncclrun::net::Request* request = nullptr;
  OK(pair.sender->isend(from.bytes.data(), 10, 0, from.registration, request));
  REFUSED(await(*pair.sender, request), ncclSystemError, "test: system error (2)");
}

void sizesBeyondTheBuffer(Pair& pair) {
  Memory from(*pair.sender, 10), to(*pair.receiver, 10);
  const Buffer group[] = {{to.bytes.data(), 10, 0, to.registration}};
  ncclrun::net::Request *sending = nullptr, *receiving = nullptr;
  OK(pair.receiver->irecv(group, receiving));
  OK(pair.sender->isend(from.bytes.data(), 10, 0, from.registration, sending));
  REFUSED(await(*pair.receiver, receiving), ncclInternalError, "test reports 1073741824 bytes in a buffer of 10");
}

void anOpenRequestIsClosed(Pair& pair) {
  Memory to(*pair.receiver, 10);
  const Buffer group[] = {{to.bytes.data(), 10, 0, to.registration}};
  ncclrun::net::Request* request = nullptr;
  bool done = true;
  OK(pair.receiver->irecv(group, request));
  OK(pair.receiver->test(request, done, {}));
  EXPECT(!done);
}

void aPeerThatGoes() {
  const auto pair = establishedPair("double-v11");
  Memory to(*pair->receiver, 10);
  const Buffer group[] = {{to.bytes.data(), 10, 0, to.registration}};
  ncclrun::net::Request* request = nullptr;
  OK(pair->receiver->irecv(group, request));
  pair->sender.reset();
  REFUSED(await(*pair->receiver, request), ncclRemoteError, "the peer has closed the connection");
}

void openRequestsAreCounted() {
  const auto pair = establishedPair("double-v11");
  anOpenRequestIsClosed(*pair);
  pair->receiver.reset();
  EXPECT(pair->count("open-at-close") == 1);
  pair->sender.reset();
  pair->listener.reset();
  pair->connector.reset();
  pair->network.reset();
  EXPECT(pair->count("finalize") == 1);
}

void aPluginThatBlocksHasAThread() {
  plant("block-ms=100");
  Pair pair("double-v6");
  double longest = 0;
  while (pair.sender == nullptr || pair.receiver == nullptr) {
    const auto start = std::chrono::steady_clock::now();
    OK(pair.step());
    longest = std::max(longest, millisecondsSince(start));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT(longest < 90);
  someSizes(pair);
}

void aPluginThatIsSeenToBlockGetsAThread() {
  plant("block-ms=100");
  const auto first = establishedPair("double-v11");
  Pair second("double-v11");
  const auto start = std::chrono::steady_clock::now();
  OK(second.step());
  EXPECT(millisecondsSince(start) < 90);
  second.establish();
  someSizes(second);
}

void aCallThatDoesNotReturn() {
  plant("block-ms=20000");
  Pair pair("double-v6", 50'000'000);
  Status status;
  while (status.ok()) status = pair.step();
  REFUSED(status, ncclSystemError, ": the call has not returned for 50 ms");
  const auto start = std::chrono::steady_clock::now();
  pair.connector.reset();
  pair.listener.reset();
  pair.network.reset();
  EXPECT(millisecondsSince(start) < 1000);
}

size_t threads() { return size_t(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {})); }

// More connections under way than there are threads for.
void manyPendingConnections(size_t count) {
  std::vector<std::unique_ptr<Pair>> pairs;
  const size_t before = threads();
  for (size_t i = 0; i < count; i++) pairs.push_back(std::make_unique<Pair>("double-v6"));
  // Nobody connects yet: accepts alone wait.
  for (int round = 0; round < 20; round++) {
    for (const auto& pair : pairs) OK(pair->listener->accept(pair->receiver));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const size_t waiting = threads();
  EXPECT(waiting > before && waiting <= before + AttemptPool::kMaxThreads);
  size_t made = 0;
  while (made < count) {
    made = 0;
    for (const auto& pair : pairs) {
      OK(pair->step());
      made += pair->sender != nullptr && pair->receiver != nullptr;
    }
    EXPECT(threads() <= before + 2 * AttemptPool::kMaxThreads);
  }
  someSizes(*pairs.front());
  someSizes(*pairs.back());
}

void connectionsThatWaitShareThreads() {
  plant("null-comm=3");
  manyPendingConnections(100);
}

void connectionsThatBlockShareThreads() {
  plant("block-ms=60");
  manyPendingConnections(48);
}

void aCallThatNeverReturnsDoesNotKeepTheOthers() {
  plant("block-at=1");
  constexpr size_t kMore = 3 * AttemptPool::kThreads;
  std::vector<std::unique_ptr<Pair>> pairs;
  for (size_t i = 0; i < kMore; i++) pairs.push_back(std::make_unique<Pair>("double-v6"));
  // The first accept of all hangs; all the others are made.
  size_t made = 0;
  while (made + 1 < kMore) {
    made = 0;
    for (const auto& pair : pairs) {
      OK(pair->step());
      made += pair->receiver != nullptr;
    }
  }
}

void aCallThatNeverReturnsEndsThoseOnItsThread() {
  plant("null-comm=1000000,block-at=400");
  constexpr size_t kCount = 3 * AttemptPool::kThreads;
  constexpr uint64_t kTimeout = 300'000'000;
  std::vector<std::unique_ptr<Pair>> pairs;
  for (size_t i = 0; i < kCount; i++) pairs.push_back(std::make_unique<Pair>("double-v6", kTimeout));
  bool isSaid = false, isSaidOfAnother = false;
  while (!isSaid || !isSaidOfAnother) {
    for (const auto& pair : pairs) {
      const Status status = pair->listener->accept(pair->receiver);
      if (status.ok()) continue;
      const bool isAnother = status.sentence.find("another call on its thread") != std::string::npos;
      REFUSED(status, ncclSystemError, "has not returned for 300 ms");
      (isAnother ? isSaidOfAnother : isSaid) = true;
    }
  }
}

void anAbandonedHandshake() {
  for (const char* name : {"double-v6", "double-v12"}) {
    Pair pair(name);
    OK(pair.step());
  }
}

// The double itself: the rules whose breach ends the process.
bool aborts(void (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    EXPECT(std::freopen("/dev/null", "w", stderr) != nullptr);
    body();
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

void anotherThreadAborts() {
  const auto pair = establishedPair("double-v11");
  transfer(*pair, 1, 1, 1);
  std::thread([&] { transfer(*pair, 1, 1, 1); }).join();
}

// Without the adapter, which does not do it.
void aTestAfterTheLastAborts() {
  ncclrun::net::plugin::Plugin* plugin = nullptr;
  void *context = nullptr, *listener = nullptr, *sender = nullptr, *receiver = nullptr, *request = nullptr;
  OK(ncclrun::net::plugin::openPlugin(pluginPath("double-v11"), plugin));
  OK(plugin->begin(1, context));
  auto& calls = plugin->calls();
  alignas(16) ncclrun::net::Handle handle{};
  ncclrun::net::plugin::abi::DeviceHandle* driver = nullptr;
  EXPECT(calls.listen(context, 0, handle.data(), &listener) == 0);
  while (sender == nullptr || receiver == nullptr) {
    if (sender == nullptr) EXPECT(calls.connect(context, 0, handle.data(), &sender, &driver) == 0);
    if (receiver == nullptr) EXPECT(calls.accept(listener, &receiver, &driver) == 0);
  }
  EXPECT(calls.isend(sender, handle.data(), 0, 0, nullptr, &request) == 0);
  for (int done = 0; done == 0;) EXPECT(calls.test(request, &done, nullptr) == 0);
  int done = 0;
  calls.test(request, &done, nullptr);
}

void anUnknownBehaviourAborts() {
  plant("nonsense");
  const auto pair = establishedPair("double-v11");
}

}  // namespace

int main() {
  bool isFine = true;
#define RUN(body) isFine &= scenario(#body, body)
  RUN(aPeerThatGoes);
  RUN(openRequestsAreCounted);
  RUN(aPluginThatBlocksHasAThread);
  RUN(aPluginThatIsSeenToBlockGetsAThread);
  RUN(aCallThatDoesNotReturn);
  RUN(connectionsThatWaitShareThreads);
  RUN(connectionsThatBlockShareThreads);
  RUN(aCallThatNeverReturnsDoesNotKeepTheOthers);
  RUN(aCallThatNeverReturnsEndsThoseOnItsThread);
  RUN(anAbandonedHandshake);
  isFine &= everyVersion("receives=8", manyAtOnce);
  isFine &= everyVersion("receives=1", manyAtOnce);
  isFine &= everyVersion("null-comm=5", handshakesThatTakeLong);
  isFine &= everyVersion("null-request=3", requestsThatAreRefused);
  isFine &= everyVersion("no-sizes", exactSizes);
  isFine &= everyVersion("in-order,receives=1", manyAtOnce);
  isFine &= everyVersion("done-after=7", manyAtOnce);
  isFine &= everyVersion("other-first", oneCompletesBeforeAnother);
  isFine &= everyVersion("replace-table", someSizes);
  isFine &= everyVersion("null-registration", someSizes);
  isFine &= everyVersion("device-memory", aFlushMakesDataVisible);
  isFine &= everyVersion("device-memory,flush-at-once", aFlushMakesDataVisible);
  isFine &= everyVersion("receives=8", hostMemoryIsNotFlushed);
  isFine &= everyVersion("device-memory,no-device-memory", gpuMemoryThatIsRefused);
  isFine &= everyVersion("device-memory,dma-buf,no-dma-buf", aDmaBufThatIsRefused);
  isFine &= everyVersion("device-memory,dma-buf", aDmaBufThatIsTaken);
  isFine &= everyVersion("device-memory,dma-buf,no-dma-buf,no-device-memory", gpuMemoryThatIsRefusedEitherWay);
  isFine &= everyVersion("device-memory,null-comm=5,null-request=3", aLoopThatCarriesGpuMemory);
  isFine &= everyVersion("device-memory,no-sizes", aLoopThatReportsNoSizes);
  isFine &= everyVersion("device-memory,no-device-memory", aLoopThatRegistersNothing);
  isFine &= everyVersion("device-memory,flush-fails", aLoopThatCannotFlush);
  isFine &= everyVersion("device-memory,lose=0", aLoopThatLosesWhatIsSent);
  isFine &= everyVersion("regions=2", twoRegions);
  isFine &= everyVersion("max-bytes=65536", longMessages);
  isFine &= everyVersion("test-error=2", aFailedTest);
  isFine &= everyVersion("test-error=1,error-code=2", aSystemError);
  isFine &= everyVersion("wrong-sizes", sizesBeyondTheBuffer);
  isFine &= everyVersion("lose=0", anOpenRequestIsClosed);
  isFine &= aborts(anotherThreadAborts) && aborts(aTestAfterTheLastAborts) && aborts(anUnknownBehaviourAborts);
  return isFine ? 0 : 1;
}
