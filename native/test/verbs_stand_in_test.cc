// The stand-in for libibverbs (native/test/verbs) within one process: states, requests, and what is refused.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "verbs/client/stand_in.h"

using namespace stand_in_verbs;

TEST(devices_are_those_of_the_configuration) {
  const Configured configured;
  int devices = 0;
  Device** const list = verbs().getDeviceList(&devices);
  EXPECT(devices == 2 && std::string(verbs().getDeviceName(list[1])) == "sib" && list[2] == nullptr);
  verbs().freeDeviceList(list);
  const End a(verbs(), "sia", kSmall);
  EXPECT(a.port.state == 4 && a.port.activeMtu == 5 && a.port.linkLayer == kLinkEthernet);
  EXPECT(a.gid.raw[12] == 10 && a.gid.raw[13] == 8 && a.gid.raw[15] == 1);
  DeviceAttributes attributes;
  EXPECT(verbs().queryDevice(a.context, &attributes) == 0 && attributes.ports == 1);
  EXPECT(verbs().isForkInitialized() == 2 && verbs().forkInit() == 0);
  GidEntry entry;
  EXPECT(verbs().queryGidEx(a.context, 1, 1, &entry, 0, sizeof entry) == 0 && entry.type == 2);
  EXPECT(verbs().queryGidEx(a.context, 1, 2, &entry, 0, sizeof entry) == ENODATA);
  EXPECT(std::string(verbs().statusText(12)) == "transport retry counter exceeded");
  EXPECT(std::string(verbs().eventText(10)) == "port error");
}

TEST(a_configuration_names_ports_links_speeds_and_addresses) {
  const Configured configured(
      "fork=0; device=sia link=ib lid=17 gbps=400 port=2 state=down link=ethernet gid=192.168.3.4 roce=1 mtu=1024;"
      "device=sib open=13");
  const End a(verbs(), "sia", kSmall);
  EXPECT(a.port.linkLayer == kLinkInfiniBand && a.port.lid == 17 && a.port.speed == 128 && a.port.width == 2);
  PortAttributes second;
  EXPECT(verbs().queryPort(a.context, 2, &second) == 0 && second.state == 1 && second.activeMtu == 3);
  EXPECT(verbs().queryPort(a.context, 3, &second) == EINVAL);
  GidEntry entry;
  EXPECT(verbs().queryGidEx(a.context, 2, 2, &entry, 0, sizeof entry) == 0 && entry.type == 1);
  EXPECT(entry.gid.raw[12] == 192 && entry.gid.raw[15] == 4);
  EXPECT(verbs().queryGidEx(a.context, 2, 3, &entry, 0, sizeof entry) == 0 && entry.type == 2);
  Device** const list = verbs().getDeviceList(nullptr);
  EXPECT(verbs().openDevice(list[1]) == nullptr && errno == EACCES);
  verbs().freeDeviceList(list);
  EXPECT(verbs().isForkInitialized() == 0);
  EXPECT(StandIn::get().configureText("device=sia") == EBUSY);
}

TEST(words_that_cannot_be_read_are_refused) {
  for (const char* const text : {"sed=1", "delay=3", "device=", "device=a mtu=1000", "device=a port=3", "gid=10.8.0.1"})
    EXPECT_MORE(StandIn::get().configureText(text) == EINVAL, text);
  const Configured configured;
  for (const char* const text : {"statu=5", "status=5 after=0", "port=sideways device=sia", "drop=2", "refuse=all"})
    EXPECT_MORE(plant(text) == EINVAL, text);
}

TEST(writes_sends_and_reads_arrive) {
  const Configured configured;
  Both both;
  for (const uint32_t bytes : {0u, 1u, 5u, 64u, 4096u, 4097u, static_cast<uint32_t>(kBufferBytes)}) {
    std::memset(both.a.data.data(), static_cast<int>(bytes % 251 + 1), bytes);
    EXPECT(both.b.want() == 0 && both.a.post(kWriteImmediate, both.b.self(), bytes) == 0);
    Completion completion;
    EXPECT(both.b.await(completion) && completion.status == 0 && completion.opcode == kReceivedImmediate);
    EXPECT(completion.immediate == 42 && completion.bytes == bytes && completion.id == 9);
    EXPECT(completion.number == both.b.pair->number && (completion.flags & 2) != 0);
    EXPECT(both.a.await(completion) && completion.opcode == kWritten && completion.id == 7);
    EXPECT(std::memcmp(both.a.data.data(), both.b.data.data(), bytes) == 0);
  }
  std::memset(both.a.data.data(), 3, kSmall);
  Completion completion;
  EXPECT(both.b.want(kSmall) == 0 && both.a.post(kSendImmediate, both.b.self(), kSmall) == 0);
  EXPECT(both.b.await(completion) && completion.opcode == kReceived && completion.bytes == kSmall &&
         both.b.data[5] == 3);
  EXPECT(both.a.await(completion) && completion.opcode == kSent);
  std::memset(both.b.data.data(), 4, kSmall);
  EXPECT(both.a.post(kRead, both.b.self(), kSmall) == 0);
  EXPECT(both.a.await(completion) && completion.opcode == kHasRead && completion.bytes == kSmall &&
         both.a.data[63] == 4);
}

TEST(infiniband_is_addressed_by_lid) {
  const Configured configured("device=sia link=ib; device=sib link=ib lid=900");
  Both both;
  EXPECT(both.isWhole());
}

TEST(a_pair_talks_to_itself_and_to_another_of_its_device) {
  const Configured configured;
  End a(verbs(), "sia", kBufferBytes);
  a.makePair({});
  EXPECT(a.connect(a.self(), {}) == 0);
  EXPECT(a.post(kRead, a.self(), 1) == 0 && a.status() == 0);
  EXPECT(a.want() == 0 && a.post(kWriteImmediate, a.self(), kSmall) == 0 && a.status() == 0 && a.status() == 0);
}

TEST(only_the_transitions_of_the_specification_are_taken) {
  const Configured configured;
  End a(verbs(), "sia", kSmall), b(verbs(), "sib", kSmall);
  a.makePair({});
  b.makePair({});
  EXPECT(a.toSend({}) == EINVAL && a.toReceive(b.self(), {}) == EINVAL);
  EXPECT(a.post(kWrite, b.self(), kSmall) == EINVAL && a.want() == EINVAL);
  EXPECT(a.toInit({}) == 0 && a.toInit({}) == 0 && a.toSend({}) == EINVAL);
  EXPECT(a.want() == 0 && a.post(kWrite, b.self(), kSmall) == EINVAL);
  QueuePairAttributes attributes = {};
  attributes.state = kReadyToReceive;
  EXPECT(verbs().modifyPair(a.pair, &attributes, kMaskState | kMaskPeer) == EINVAL);
  Peer nowhere = b.self();
  nowhere.gid = {};
  EXPECT(a.toReceive(nowhere, {}) == EINVAL);
  EXPECT(a.toReceive(b.self(), {}) == 0 && a.post(kWrite, b.self(), kSmall) == EINVAL);
  EXPECT(a.toSend({.timeout = 32}) == EINVAL && a.toSend({.retries = 8}) == EINVAL);
  EXPECT(a.toSend({}) == 0 && a.state() == kReadyToSend);
  attributes.state = kError;
  EXPECT(verbs().modifyPair(a.pair, &attributes, kMaskState) == 0 && a.status() == kFlushed);
  attributes.state = kReset;
  EXPECT(verbs().modifyPair(a.pair, &attributes, kMaskState) == 0);
  EXPECT(a.connect(b.self(), {}) == 0 && b.connect(a.self(), {}) == 0);
  EXPECT(a.post(kWrite, b.self(), kSmall) == 0 && a.status() == 0);
}

TEST(wrong_keys_and_ranges_break_both_sides) {
  const Configured configured;
  const auto refuses = [](void (*spoil)(Peer&), int opcode) {
    Both both;
    Peer peer = both.b.self();
    spoil(peer);
    EXPECT(both.b.want() == 0 && both.a.post(opcode, peer, kSmall) == 0);
    Completion completion;
    EXPECT(both.a.await(completion) && completion.status == kRemoteAccess && completion.vendorError == 0x88);
    EXPECT(both.b.status() == (opcode == kWriteImmediate ? kRemoteAccess : kFlushed));
    EXPECT(both.a.state() == kError && both.b.state() == kError);
    EXPECT(both.a.post(kWrite, both.b.self(), kSmall, 0) == 0 && both.a.status() == kFlushed);
  };
  refuses([](Peer& peer) { peer.key ^= 2; }, kWriteImmediate);
  refuses([](Peer& peer) { peer.key ^= 1; }, kWrite);  // the local key
  refuses([](Peer& peer) { peer.address += kBufferBytes - kSmall + 1; }, kWrite);
  refuses([](Peer& peer) { peer.address -= 1; }, kRead);
}

TEST(regions_of_other_rights_or_domains_are_refused) {
  const Configured configured;
  const auto status = [](DomainHandle* (*domainOf)(End&), int access) {
    Both both;
    DomainHandle* const domain = domainOf(both.b);
    RegionHandle* const region = verbs().registerMemory(domain, both.b.data.data(), kSmall, access);
    Peer peer = both.b.self();
    peer.key = region->remoteKey;
    EXPECT(both.a.post(kWrite, peer, kSmall) == 0);
    const int result = both.a.status();
    EXPECT(verbs().deregister(region) == 0);
    if (domain != both.b.domain) EXPECT(verbs().deallocDomain(domain) == 0);
    return result;
  };
  const auto own = [](End& end) { return end.domain; };
  const auto other = [](End& end) { return verbs().allocDomain(end.context); };
  EXPECT(status(own, kLocalWrite | kRemoteWrite) == kSuccess);
  EXPECT(status(own, kLocalWrite | kRemoteRead) == kRemoteAccess);
  EXPECT(status(other, kLocalWrite | kRemoteWrite) == kRemoteAccess);
}

TEST(kinds_of_requests_that_a_pair_does_not_allow_are_invalid) {
  const Configured configured;
  for (const auto& [access, opcode] : {std::pair(kRemoteRead, kWrite), std::pair(kRemoteWrite, kRead)}) {
    Both both({.access = access});
    EXPECT(both.a.post(opcode, both.b.self(), kSmall) == 0 && both.a.status() == kInvalidRequest);
    EXPECT(both.b.state() == kError);
  }
}

TEST(wrong_local_keys_end_as_local_protection) {
  const Configured configured;
  Both both;
  Piece piece = {reinterpret_cast<uint64_t>(both.a.data.data()), kSmall, both.a.region->localKey ^ 2};
  SendRequest request = {};
  request.pieces = &piece;
  request.pieceCount = 1;
  request.remoteAddress = both.b.self().address;
  request.remoteKey = both.b.self().key;
  EXPECT(both.a.postRaw(request) == 0 && both.a.status() == kLocalProtection && both.a.state() == kError);
  EXPECT(both.b.state() == kReadyToSend);
}

TEST(what_does_not_fit_into_a_receive_ends_both) {
  const Configured configured;
  Both both;
  EXPECT(both.b.want(kSmall) == 0 && both.a.post(kSend, both.b.self(), kSmall + 1) == 0);
  EXPECT(both.a.status() == kInvalidRequest && both.b.status() == kLocalLength);
}

TEST(inline_data_may_change_after_the_post) {
  const Configured configured("delay=2000-2000");
  Both both({.inlineBytes = 64});
  both.a.data[0] = 1;
  EXPECT(both.a.post(kWrite, both.b.self(), kSmall, kSignaled | kInline) == 0);
  both.a.data[0] = 2;
  EXPECT(both.a.status() == 0 && both.b.data[0] == 1);
  EXPECT(both.a.post(kWrite, both.b.self(), 65, kSignaled | kInline) == EINVAL);
}

TEST(unsignalled_requests_have_no_completion_and_keep_their_place) {
  const Configured configured;
  Both both({.sends = 4});
  for (int index = 0; index < 3; ++index) EXPECT(both.a.post(kWrite, both.b.self(), kSmall, 0) == 0);
  EXPECT(both.a.status(0) == -1);
  EXPECT(both.a.post(kWrite, both.b.self(), kSmall) == 0);
  EXPECT(both.a.post(kWrite, both.b.self(), kSmall) == ENOMEM);
  EXPECT(both.a.status() == 0 && both.a.status(0) == -1);
  for (int index = 0; index < 4; ++index) EXPECT(both.a.post(kWrite, both.b.self(), kSmall, 0) == 0);
  EXPECT(both.a.post(kWrite, both.b.self(), kSmall, 0) == ENOMEM);
  Both all({.signalsAll = true});
  EXPECT(all.a.post(kWrite, all.b.self(), kSmall, 0) == 0 && all.a.status() == 0);
}

TEST(receives_have_their_own_places) {
  const Configured configured;
  Both both({.receives = 2});
  EXPECT(both.b.want() == 0 && both.b.want() == 0 && both.b.want() == ENOMEM);
  EXPECT(both.a.post(kWriteImmediate, both.b.self(), kSmall) == 0);
  EXPECT(both.b.want() == ENOMEM && both.b.status() == 0 && both.b.want() == 0);
}

TEST(a_list_is_posted_up_to_the_bad_request) {
  const Configured configured;
  Both both;
  SendRequest third = {}, second = {}, first = {};
  first.next = &second;
  second.next = &third;
  second.opcode = 77;
  first.flags = kSignaled;
  SendRequest* bad = nullptr;
  EXPECT(both.a.context->postSend(both.a.pair, &first, &bad) == EINVAL && bad == &second);
  EXPECT(both.a.status() == 0 && both.a.status(0) == -1);
}

TEST(a_sender_waits_for_a_receive_as_long_as_it_may) {
  const Configured configured;
  Both patient;
  EXPECT(patient.a.post(kWriteImmediate, patient.b.self(), kSmall) == 0 && patient.a.status(20) == -1);
  EXPECT(patient.b.want() == 0 && patient.a.status() == 0 && patient.b.status() == 0);
  Both hasty({.receiverRetries = 2});
  EXPECT(hasty.a.post(kWriteImmediate, hasty.b.self(), kSmall) == 0);
  EXPECT(hasty.a.status() == kReceiverRetryExceeded && hasty.a.state() == kError);
}

TEST(a_peer_that_is_gone_or_counts_otherwise_is_timed_out) {
  const Configured configured;
  Both both({.timeout = 12, .retries = 2});
  const Peer peer = both.b.self();
  both.b.destroyPair();
  const auto start = std::chrono::steady_clock::now();
  EXPECT(both.a.post(kWrite, peer, kSmall) == 0 && both.a.post(kWrite, peer, kSmall, 0) == 0);
  Completion completion;
  EXPECT(both.a.await(completion) && completion.status == kRetryExceeded && completion.vendorError == 0x81);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  EXPECT_MORE(took.count() > 3 * 16.7 && took.count() < 10000, std::to_string(took.count()));
  EXPECT(both.a.status() == kFlushed);
  End a(verbs(), "sia", kSmall), b(verbs(), "sib", kSmall);
  a.makePair({});
  b.makePair({});
  EXPECT(a.connect(b.self(), {.timeout = 10, .sendNumber = 5}) == 0 && b.connect(a.self(), {.receiveNumber = 4}) == 0);
  EXPECT(a.post(kWrite, b.self(), kSmall) == 0 && a.status() == kRetryExceeded);
}

TEST(devices_of_other_fabrics_are_not_reached) {
  const Configured configured("device=sia fabric=one; device=sib fabric=two");
  Both both({.timeout = 8, .retries = 1});
  EXPECT(both.a.post(kWrite, both.b.self(), kSmall) == 0 && both.a.status() == kRetryExceeded);
}

TEST(destroyed_pairs_leave_their_completions) {
  const Configured configured;
  Both both;
  EXPECT(both.a.post(kWrite, both.b.self(), kSmall) == 0);
  const uint32_t number = both.a.pair->number;
  both.a.destroyPair();
  Completion completion;
  EXPECT(both.a.await(completion) && completion.status == 0 && completion.number == number);
}

TEST(other_drivers_clean_queues_and_have_an_event_of_refused_accesses) {
  const Configured configured("clean=1 access-event=1");
  Both both;
  EXPECT(both.a.post(kWrite, both.b.self(), kSmall) == 0);
  Both other;
  Peer peer = other.b.self();
  peer.key ^= 2;
  EXPECT(other.a.post(kWrite, peer, kSmall) == 0 && other.b.event(1000) == kQueuePairAccess);
  both.a.destroyPair();
  EXPECT(both.a.drain() == 0 && other.a.status() == kRemoteAccess);
}

TEST(a_retry_count_of_seven_may_have_no_end) {
  const Configured configured("retry7=forever");
  Both endless({.timeout = 4, .retries = 7}), other({.timeout = 4, .retries = 6});
  const Peer peer = endless.b.self(), gone = other.b.self();
  endless.b.destroyPair();
  other.b.destroyPair();
  EXPECT(endless.a.post(kWrite, peer, kSmall) == 0 && other.a.post(kWrite, gone, kSmall) == 0);
  EXPECT(other.a.status() == kRetryExceeded && endless.a.status(50) == -1);
}

TEST(objects_in_use_cannot_be_destroyed) {
  const Configured configured;
  Both both({}, 256, true);
  EXPECT(verbs().destroyQueue(both.a.queue) == EBUSY && verbs().deallocDomain(both.a.domain) == EBUSY);
  EXPECT(verbs().destroyChannel(both.a.channel) == EBUSY);
}

TEST(registrations_are_checked_and_counted) {
  const Configured configured("memlock=1100000");
  End a(verbs(), "sia", kBufferBytes);
  std::vector<uint8_t> more(100000);
  EXPECT(verbs().registerMemory(a.domain, more.data(), more.size(), kLocalWrite) == nullptr && errno == ENOMEM);
  RegionHandle* const region = verbs().registerMemory(a.domain, more.data(), 50000, kLocalWrite);
  EXPECT(region != nullptr && region->localKey != region->remoteKey && verbs().deregister(region) == 0);
  EXPECT(verbs().registerMemory(a.domain, more.data(), 10, kRemoteWrite) == nullptr && errno == EINVAL);
  EXPECT(verbs().registerMemory(a.domain, more.data(), 0, kLocalWrite) == nullptr && errno == EINVAL);
  void* const hole = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(hole, 8192);
  EXPECT(verbs().registerMemory(a.domain, hole, 8192, kLocalWrite) == nullptr && errno == EFAULT);
  EXPECT(verbs().registerDmaBuf(a.domain, 0, 4096, 0, -1, kLocalWrite) == nullptr && errno == EOPNOTSUPP);
}

TEST(regions_have_addresses_of_their_own_and_descriptors) {
  const Configured configured("dmabuf=1");
  Both both;
  const int memory = memfd_create("buffer", 0);
  EXPECT(ftruncate(memory, 8192) == 0);
  auto* const bytes = static_cast<uint8_t*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
  EXPECT(verbs().registerDmaBuf(both.b.domain, 0, 4096, 0, -1, kLocalWrite) == nullptr && errno == EBADF);
  const auto rights = kLocalWrite | kRemoteWrite;
  RegionHandle* const region = verbs().registerDmaBuf(both.b.domain, 4096, 4096, 0x7000, memory, rights);
  EXPECT(region != nullptr);
  Peer peer = both.b.self();
  peer.address = 0x7000 + 100;
  peer.key = region->remoteKey;
  both.a.data[0] = 99;
  EXPECT(both.a.post(kWrite, peer, 1) == 0 && both.a.status() == 0 && bytes[4196] == 99);
  EXPECT(verbs().deregister(region) == 0);
  uint8_t* const data = both.b.data.data();
  const uint64_t start = 0x100000 + reinterpret_cast<uint64_t>(data) % 4096;
  EXPECT(verbs().registerIova(both.b.domain, data, 4096, start + 1, rights) == nullptr && errno == EINVAL);
  RegionHandle* const other = verbs().registerIova(both.b.domain, data, 4096, start, kRelaxedOrdering | rights);
  peer.address = start + 7;
  peer.key = other->remoteKey;
  EXPECT(both.a.post(kWrite, peer, 1) == 0 && both.a.status() == 0 && both.b.data[7] == 99);
  EXPECT(verbs().deregister(other) == 0);
  munmap(bytes, 8192);
  close(memory);
}

TEST(words_that_a_peer_writes_may_be_polled) {
  const Configured configured;
  Both both({.inlineBytes = 64});
  auto* const flag = reinterpret_cast<uint64_t*>(both.b.data.data());
  std::thread peer([&] {
    for (uint64_t round = 1; round <= 1000; ++round) {
      std::memcpy(both.a.data.data(), &round, sizeof round);
      EXPECT(both.a.post(kWrite, both.b.self(), 8, kSignaled | kInline) == 0 && both.a.status() == 0);
    }
  });
  for (uint64_t seen = 0; seen < 1000;) seen = __atomic_load_n(flag, __ATOMIC_ACQUIRE);
  peer.join();
}

TEST_MAIN
