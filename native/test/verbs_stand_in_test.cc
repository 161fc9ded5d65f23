// The stand-in for libibverbs (native/test/verbs) does what its header says, within one process.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "support/check.h"
#include "verbs/client/client.h"

using namespace stand_in_verbs;

namespace {

Library verbs;
int (*plant)(const char*);
int (*configure)(const char*);
long (*count)(const char*);

constexpr size_t kBytes = 1u << 20;
constexpr uint32_t kSmall = 64;

struct Both {
  explicit Both(const Terms& terms = {}, int capacity = 256) : a(verbs, "sia", kBytes, capacity), b(verbs, "sib", kBytes, capacity) {
    EXPECT(connectBoth(a, b, terms) == 0);
  }
  End a, b;
};

void expectNothingLives() {
  for (const char* const what : {"contexts", "domains", "regions", "channels", "completion queues", "queue pairs"}) {
    if (count(what) != 0) std::fprintf(stderr, "%ld %s are left\n", count(what), what);
    EXPECT(count(what) == 0);
  }
}

void devicesAreAsConfigured() {
  int devices = 0;
  Device** const list = verbs.getDeviceList(&devices);
  EXPECT(devices == 2 && std::string(verbs.getDeviceName(list[1])) == "sib" && list[2] == nullptr);
  verbs.freeDeviceList(list);
  End a(verbs, "sia", kSmall);
  EXPECT(a.port.state == 4 && a.port.activeMtu == 5 && a.port.linkLayer == kLinkEthernet);
  EXPECT(a.gid.raw[12] == 10 && a.gid.raw[13] == 8 && a.gid.raw[15] == 1);
  DeviceAttributes attributes;
  EXPECT(verbs.queryDevice(a.context, &attributes) == 0 && attributes.ports == 1);
  EXPECT(verbs.isForkInitialized() == 2 && verbs.forkInit() == 0);
  GidEntry entry;
  EXPECT(verbs.queryGidEx(a.context, 1, 1, &entry, 0, sizeof entry) == 0 && entry.type == 2);
  EXPECT(verbs.queryGidEx(a.context, 1, 2, &entry, 0, sizeof entry) == ENODATA);
  EXPECT(std::string(verbs.statusText(12)) == "transport retry counter exceeded");
}

void writesArrive() {
  Both both;
  std::memset(both.a.data.data(), 0x5a, kBytes);
  EXPECT(both.b.want() == 0);
  EXPECT(both.a.post(kWriteImmediate, both.b.self(), kBytes) == 0);
  Completion completion;
  EXPECT(both.b.await(completion) && completion.status == 0 && completion.opcode == kReceivedImmediate);
  EXPECT(completion.immediate == 42 && completion.bytes == kBytes && completion.id == 9);
  EXPECT(completion.number == both.b.pair->number);
  EXPECT(both.a.await(completion) && completion.opcode == kWritten && completion.id == 7);
  EXPECT(both.a.data == both.b.data);
}

void wrongKeysBreakBothSides() {
  Both both;
  Peer peer = both.b.self();
  peer.key ^= 2;
  EXPECT(both.b.want() == 0);
  EXPECT(both.a.post(kWriteImmediate, peer, kSmall) == 0);
  EXPECT(both.a.status() == kRemoteAccess && both.b.status() == kRemoteAccess);
  EXPECT(both.a.state() == kError && both.b.state() == kError);
  EXPECT(both.a.post(kWrite, both.b.self(), kSmall, 0) == 0 && both.a.status() == kFlushed);
}

void aPeerThatIsGoneIsTimedOut() {
  Both both({.timeout = 10, .retries = 1});
  const Peer peer = both.b.self();
  both.b.destroyPair();
  EXPECT(both.a.post(kWrite, peer, kSmall) == 0);
  EXPECT(both.a.status() == kRetryExceeded);
}

struct Case {
  const char* name;
  void (*run)();
};

constexpr Case kCases[] = {
    {"devices are as configured", devicesAreAsConfigured},
    {"writes arrive", writesArrive},
    {"wrong keys break both sides", wrongKeysBreakBothSides},
    {"a peer that is gone is timed out", aPeerThatIsGoneIsTimedOut},
};

}  // namespace

int main() {
  void* handle = nullptr;
  verbs = openLibrary(NCCLRUN_TEST_VERBS, &handle);
  plant = reinterpret_cast<decltype(plant)>(dlsym(handle, "stand_in_verbs_plant"));
  configure = reinterpret_cast<decltype(configure)>(dlsym(handle, "stand_in_verbs_configure"));
  count = reinterpret_cast<decltype(count)>(dlsym(handle, "stand_in_verbs_count"));
  EXPECT(plant != nullptr && configure != nullptr && count != nullptr);
  for (const Case& one : kCases) {
    EXPECT(configure("") == 0);
    std::fprintf(stderr, "%s\n", one.name);
    one.run();
    expectNothingLives();
  }
  return 0;
}
