// What a libibverbs and its devices do, asked of them: a line for each question. The lines of the stand-in must be
// those of rdma_rxe (test/native/soft-roce.test.ts).
//
//   verbs_probe LIBRARY DEVICE DEVICE [CUT JOIN]      commands that cut the cable between the devices, and join it
#include <poll.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "verbs/client/client.h"

using namespace stand_in_verbs;

namespace {

constexpr size_t kBytes = 1u << 20;
constexpr uint32_t kSmall = 64;
constexpr Terms kPatient = {.timeout = 17, .retries = 6};
constexpr Terms kQuick = {.timeout = 14, .retries = 1};  // 0.13 s until a peer is gone

// The numbers of a list are asked for in its order, those of a call in any.
void print(const char* what, std::initializer_list<int> numbers) {
  std::printf("%s:", what);
  for (const int number : numbers) std::printf(" %d", number);
  std::printf("\n");
}

struct Probe {
  const Library& verbs;
  End &a, &b;

  void connect(const Terms& terms = kPatient) {
    for (End* const end : {&a, &b}) {
      end->destroyPair();
      end->drain();
    }
    const int error = connectBoth(a, b, terms);
    if (error != 0) std::printf("connecting: error %d\n", error);
  }
  // Statuses and states of both sides.
  void report(const char* what, int sender, int receiver) {
    std::printf("%s: sender %d, receiver %d, states %d and %d\n", what, sender, receiver, a.state(), b.state());
  }
  void write(const char* what, int opcode, const Peer& peer) {
    b.want();
    const int posted = a.post(opcode, peer, kSmall);
    if (posted != 0) std::printf("%s: posting: error %d\n", what, posted);
    const int sender = a.status();
    report(what, sender, b.status());
  }
};

void sizes(Probe& probe) {
  probe.connect();
  for (const uint32_t bytes : {0u, 1u, 5u, 64u, 4096u, 4097u, 100000u}) {
    std::memset(probe.a.data.data(), static_cast<int>(bytes % 250 + 1), bytes);
    probe.b.want();
    probe.a.post(kWriteImmediate, probe.b.self(), bytes);
    Completion sent = {}, received = {};
    probe.b.await(received);
    probe.a.await(sent);
    const bool isSame = std::memcmp(probe.a.data.data(), probe.b.data.data(), bytes) == 0;
    std::printf("%u bytes: sender %d %d id %d, receiver %d %d bytes %u immediate %u id %d flags %u, data %s\n", bytes,
                sent.status, sent.opcode, static_cast<int>(sent.id), received.status, received.opcode, received.bytes,
                received.immediate, static_cast<int>(received.id), received.flags & 2, isSame ? "same" : "other");
  }
}

void sendsAndReads(Probe& probe) {
  probe.connect();
  probe.a.data[1] = 7;
  probe.b.want(kSmall);
  probe.a.post(kSendImmediate, probe.b.self(), kSmall);
  Completion completion = {};
  probe.b.await(completion);
  std::printf("send: receiver %d %d bytes %u immediate %u byte %d, ", completion.status, completion.opcode,
              completion.bytes, completion.immediate, probe.b.data[1]);
  probe.a.await(completion);
  std::printf("sender %d %d\n", completion.status, completion.opcode);
  probe.b.data[2] = 8;
  probe.a.post(kRead, probe.b.self(), kSmall);
  probe.a.await(completion);
  std::printf("read: %d %d byte %d\n", completion.status, completion.opcode, probe.a.data[2]);
}

void refusals(Probe& probe) {
  const auto other = [&probe](void (*change)(Peer&)) {
    probe.connect();
    Peer peer = probe.b.self();
    change(peer);
    return peer;
  };
  probe.write("wrong key, with immediate", kWriteImmediate, other([](Peer& peer) { peer.key ^= 0x5500; }));
  print("then a post, its status, events of both",
        {probe.a.post(kWrite, probe.b.self(), kSmall, 0), probe.a.status(), probe.a.event(50), probe.b.event(50)});
  probe.write("wrong key", kWrite, other([](Peer& peer) { peer.key ^= 0x5500; }));
  probe.write("behind the end", kWrite, other([](Peer& peer) { peer.address += kBytes - kSmall + 1; }));
  probe.write("before the start, read", kRead, other([](Peer& peer) { peer.address -= 4096; }));
  probe.connect({.timeout = 17, .retries = 6, .access = kRemoteRead});
  probe.write("pair without the right to write", kWrite, probe.b.self());
  probe.connect({.timeout = 17, .retries = 6, .access = kRemoteWrite});
  probe.write("pair without the right to read", kRead, probe.b.self());
  probe.connect();
  Piece piece = {reinterpret_cast<uint64_t>(probe.a.data.data()), kSmall, probe.a.region->localKey ^ 0x5500};
  SendRequest request = {};
  request.pieces = &piece;
  request.pieceCount = 1;
  request.remoteAddress = probe.b.self().address;
  request.remoteKey = probe.b.self().key;
  print("wrong local key: error, status, state", {probe.a.postRaw(request), probe.a.status(), probe.a.state()});
}

void lengths(Probe& probe) {
  probe.connect();
  probe.b.want(kSmall);
  print("send that is too long: error, status, states",
        {probe.a.post(kSend, probe.b.self(), kSmall + 1), probe.a.status(), probe.a.state(), probe.b.state()});
}

void waiting(Probe& probe) {
  probe.connect({.timeout = 17, .retries = 7});  // rdma_rxe counts retries while it waits for a receive
  print("no receive, then one", {probe.a.post(kWriteImmediate, probe.b.self(), kSmall), probe.a.status(200),
                                 probe.b.want(), probe.a.status(), probe.b.status()});
  probe.connect({.timeout = 17, .retries = 7, .receiverRetries = 1});
  print("no receive and one retry: error, status, states",
        {probe.a.post(kWriteImmediate, probe.b.self(), kSmall), probe.a.status(), probe.a.state(), probe.b.state()});
}

void gone(Probe& probe) {
  probe.connect(kQuick);
  End& a = probe.a;
  const Peer peer = probe.b.self();
  probe.b.destroyPair();
  print("peer is gone: errors, statuses, state",
        {a.post(kWrite, peer, kSmall), a.post(kWrite, peer, kSmall, 0), a.status(), a.status(), a.state()});
  a.destroyPair();
  a.makePair({});
  probe.b.makePair({});
  Terms ahead = kQuick, behind = kQuick;
  ahead.sendNumber = 500;
  behind.receiveNumber = 400;
  print("sequence numbers that differ", {a.connect(probe.b.self(), ahead), probe.b.connect(a.self(), behind),
                                         a.post(kWrite, probe.b.self(), kSmall), a.status()});
}

void states(Probe& probe) {
  for (End* const end : {&probe.a, &probe.b}) {
    end->destroyPair();
    end->drain();
    end->makePair({});
  }
  End& a = probe.a;
  const Peer peer = probe.b.self();
  print("reset: to send, to receive, post", {a.toSend({}), a.toReceive(peer, {}), a.post(kWrite, peer, kSmall)});
  a.destroyPair();
  a.makePair({});
  print("init, again, to send, want", {a.toInit({}), a.toInit({}), a.toSend({}), a.want()});
  QueuePairAttributes attributes = {};
  attributes.state = kReadyToReceive;
  print("to receive without attributes, with them",
        {probe.verbs.modifyPair(a.pair, &attributes, kMaskState | kMaskPeer), a.toReceive(peer, {})});
  print("no such timeout, to send", {a.toSend({.timeout = 32}), a.toSend({}), a.state()});
  attributes.state = kError;
  print("to error: receive, post, status", {probe.verbs.modifyPair(a.pair, &attributes, kMaskState), a.status(),
                                            a.post(kWrite, peer, kSmall, 0), a.status()});
  print("receive in the error state, status", {a.want(), a.status(1000)});
  attributes.state = kReset;
  print("to reset, to init", {probe.verbs.modifyPair(a.pair, &attributes, kMaskState), a.toInit({})});
}

void requests(Probe& probe) {
  probe.connect({.timeout = 17, .retries = 6, .inlineBytes = 64});
  End& a = probe.a;
  const Peer peer = probe.b.self();
  a.data[0] = 9;
  print("inline: error, status", {a.post(kWrite, peer, kSmall, kSignaled | kInline), a.status(), probe.b.data[0]});
  print("unsignalled: error, status", {a.post(kWrite, peer, kSmall, 0), a.status(100)});
  SendRequest second = {}, first = {};
  Piece pieces[40] = {};
  first.next = &second;
  first.flags = kSignaled;
  second.pieces = pieces;
  second.pieceCount = 40;
  SendRequest* bad = nullptr;
  const int error = a.context->postSend(a.pair, &first, &bad);
  print("list with a bad request: error, the second, statuses", {error, bad == &second, a.status(), a.status(100)});
  probe.connect();
  print("two requests", {a.post(kWrite, probe.b.self(), kSmall), probe.b.want(),
                         a.post(kWriteImmediate, probe.b.self(), kSmall), probe.b.status()});
  a.destroyPair();
  print("completions of a destroyed pair", {a.drain()});
}

void notifications(Probe& probe) {
  probe.connect();
  const auto isTold = [&probe] {
    pollfd one = {probe.b.channel->descriptor, POLLIN, 0};
    return poll(&one, 1, 200);
  };
  const auto write = [&probe](uint32_t flags) {
    probe.b.want();
    probe.a.post(kWriteImmediate, probe.b.self(), kSmall, kSignaled | flags);
    return probe.a.status() + probe.b.status();
  };
  const auto taken = [&probe] {
    CompletionQueueHandle* queue = nullptr;
    void* user = nullptr;
    const int error = probe.verbs.getQueueEvent(probe.b.channel, &queue, &user);
    probe.verbs.ackQueueEvents(queue, 1);
    return error != 0 || queue != probe.b.queue || user != &probe.b;
  };
  const auto ask = [&probe](int solicited) { return probe.b.context->requestNotification(probe.b.queue, solicited); };
  print("notification: unasked, asked, once",
        {write(0), isTold(), ask(0), write(0), write(0), isTold(), taken(), isTold()});
  print("solicited only: other, solicited", {ask(1), write(0), isTold(), write(kSolicited), isTold(), taken()});
}

void objects(Probe& probe) {
  probe.connect();
  End& a = probe.a;
  const auto refused = [&](const char* what, void* address, size_t bytes, int access) {
    errno = 0;
    print(what, {probe.verbs.registerMemory(a.domain, address, bytes, access) == nullptr, errno});
  };
  void* const hole = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(hole, 8192);
  refused("memory that is not there", hole, 8192, kLocalWrite);
  refused("remote but no local writes", a.data.data(), 64, kRemoteWrite);
  errno = 0;
  print("dma-buf", {probe.verbs.registerDmaBuf(a.domain, 0, 4096, 0, -1, kLocalWrite) == nullptr, errno});
  const uint64_t start = 0x100000 + reinterpret_cast<uint64_t>(probe.b.data.data()) % 4096;
  RegionHandle* const region = probe.verbs.registerIova(probe.b.domain, probe.b.data.data(), 8192, start,
                                                        kLocalWrite | kRemoteWrite | kRelaxedOrdering);
  print("relaxed ordering", {region != nullptr});
  if (region == nullptr) return;
  Peer peer = probe.b.self();
  peer.address = start;
  peer.key = region->remoteKey;
  a.data[5] = 55;
  print("address of its own", {a.post(kWrite, peer, kSmall), a.status(), probe.b.data[5]});
  probe.verbs.deregister(region);
  GidEntry entry = {};
  const int known = probe.verbs.queryGidEx(a.context, 1, 1, &entry, 0, sizeof entry);
  print("gids: 1, its type, 5",
        {known, static_cast<int>(entry.type), probe.verbs.queryGidEx(a.context, 1, 5, &entry, 0, sizeof entry)});
  print("domain in use", {probe.verbs.deallocDomain(a.domain)});
  print("queue in use", {probe.verbs.destroyQueue(a.queue)});
  print("fork, gids, mtu, link", {probe.verbs.isForkInitialized(), a.port.gids, a.port.activeMtu, a.port.linkLayer});
}

// A cable that is cut and joined again by these commands.
void cable(Probe& probe, const char* cut, const char* join) {
  End &a = probe.a, &b = probe.b;
  const auto portState = [&probe](const End& end) {
    PortAttributes port = {};
    probe.verbs.queryPort(end.context, 1, &port);
    return port.state;
  };
  // The first event of both; there may be several of one kind.
  const auto events = [&](const char* what, const char* command) {
    const int result = std::system(command);
    const int first = a.event(20000), second = b.event(20000);
    print(what, {result, first, second, portState(a), portState(b)});
    while (a.event(200) == first || b.event(200) == second) continue;
  };
  probe.connect(kQuick);
  events("cut: events, states of ports", cut);
  print("write", {a.post(kWrite, b.self(), kSmall), a.status(), a.state(), b.state()});
  events("joined: events, states of ports", join);
  probe.connect();
  print("write of a new pair", {a.post(kWrite, b.self(), kSmall), a.status()});
  events("cut again", cut);
  print("write", {a.post(kWrite, b.self(), kSmall), a.status(100), a.state()});
  events("joined again", join);
  print("its status", {a.status(), a.state()});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const Library verbs = openLibrary(argv[1]);
  End a(verbs, argv[2], kBytes, 256, 1, true), b(verbs, argv[3], kBytes, 256, 1, true);
  Probe probe{verbs, a, b};
  for (void (*const part)(Probe&) :
       {sizes, sendsAndReads, refusals, lengths, waiting, gone, states, requests, notifications, objects}) {
    part(probe);
  }
  if (argc == 6) cable(probe, argv[4], argv[5]);
  return 0;
}
