#include "client.h"

#include <dlfcn.h>
#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stand_in_verbs {
namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
  std::_Exit(1);
}

bool isIpv4(const Gid& gid) {
  constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix, sizeof kPrefix) == 0;
}

}  // namespace

Library openLibrary(const char* path, void** handle) {
  void* const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::_Exit(1);
  }
  if (handle != nullptr) *handle = opened;
  Library library;
#define STAND_IN_VERBS_LOOK_UP(member, symbol, version, result, parameters)                                \
  library.member = reinterpret_cast<decltype(library.member)>(dlvsym(opened, symbol, "IBVERBS_" version)); \
  if (library.member == nullptr) fail(std::string(path) + " has no " symbol " of version IBVERBS_" version);
  STAND_IN_VERBS_FUNCTIONS(STAND_IN_VERBS_LOOK_UP)
#undef STAND_IN_VERBS_LOOK_UP
  return library;
}

End::End(const Library& library, const std::string& device, size_t bytes, int capacity, int number, bool hasChannel)
    : data(bytes), library_(library), portNumber_(number) {
  Device** const list = library.getDeviceList(nullptr);
  if (list == nullptr) fail("ibv_get_device_list");
  for (Device** one = list; *one != nullptr && context == nullptr; ++one) {
    if (device == library.getDeviceName(*one)) context = library.openDevice(*one);
  }
  library.freeDeviceList(list);
  if (context == nullptr) fail("no device " + device);
  if (library.queryPort(context, static_cast<uint8_t>(number), &port) != 0) fail("ibv_query_port");
  for (int index = 0; index < 4 && !isIpv4(gid); ++index) {
    if (library.queryGid(context, static_cast<uint8_t>(number), index, &gid) != 0) fail("ibv_query_gid");
    gidIndex_ = index;
    if (port.linkLayer == kLinkInfiniBand) break;
  }
  domain = library.allocDomain(context);
  if (hasChannel) channel = library.createChannel(context);
  queue = library.createQueue(context, capacity, this, channel, 0);
  region = library.registerMemory(domain, data.data(), bytes, kLocalWrite | kRemoteWrite | kRemoteRead);
  if (domain == nullptr || queue == nullptr || region == nullptr) fail("objects of " + device);
}

End::~End() {
  destroyPair();
  if (library_.deregister(region) != 0 || library_.destroyQueue(queue) != 0) fail("destroying objects");
  if (channel != nullptr && library_.destroyChannel(channel) != 0) fail("ibv_destroy_comp_channel");
  if (library_.deallocDomain(domain) != 0 || library_.closeDevice(context) != 0) fail("closing the device");
}

void End::makePair(const Terms& terms) {
  QueuePairOptions options = {};
  options.sendQueue = options.receiveQueue = queue;
  options.capacity = {terms.sends, terms.receives, 2, 2, terms.inlineBytes};
  options.type = kReliable;
  options.signalAll = terms.signalsAll;
  pair = library_.createPair(domain, &options);
  if (pair == nullptr) fail("ibv_create_qp");
}

void End::destroyPair() {
  if (pair != nullptr && library_.destroyPair(pair) != 0) fail("ibv_destroy_qp");
  pair = nullptr;
}

int End::toInit(const Terms& terms) {
  QueuePairAttributes attributes = {};
  attributes.state = kInit;
  attributes.port = static_cast<uint8_t>(portNumber_);
  attributes.access = terms.access;
  return library_.modifyPair(pair, &attributes, kMaskState | kMaskPartitionKey | kMaskPort | kMaskAccess);
}

int End::toReceive(const Peer& peer, const Terms& terms) {
  QueuePairAttributes attributes = {};
  attributes.state = kReadyToReceive;
  attributes.mtu = port.activeMtu;
  attributes.peer = peer.number;
  attributes.receiveNumber = terms.receiveNumber;
  attributes.peerReads = 1;
  attributes.receiverTimer = static_cast<uint8_t>(terms.receiverTimer);
  attributes.path.port = static_cast<uint8_t>(portNumber_);
  if (port.linkLayer == kLinkEthernet) {
    attributes.path.isGlobal = 1;
    attributes.path.gid = peer.gid;
    attributes.path.gidIndex = static_cast<uint8_t>(gidIndex_);
    attributes.path.hops = 255;
  } else {
    attributes.path.lid = peer.lid;
  }
  return library_.modifyPair(
      pair, &attributes,
      kMaskState | kMaskPath | kMaskMtu | kMaskPeer | kMaskReceiveNumber | kMaskPeerReads | kMaskReceiverTimer);
}

int End::toSend(const Terms& terms) {
  QueuePairAttributes attributes = {};
  attributes.state = kReadyToSend;
  attributes.timeout = static_cast<uint8_t>(terms.timeout);
  attributes.retries = static_cast<uint8_t>(terms.retries);
  attributes.receiverRetries = static_cast<uint8_t>(terms.receiverRetries);
  attributes.sendNumber = terms.sendNumber;
  attributes.reads = 1;
  return library_.modifyPair(
      pair, &attributes,
      kMaskState | kMaskTimeout | kMaskRetries | kMaskReceiverRetries | kMaskSendNumber | kMaskReads);
}

int End::connect(const Peer& peer, const Terms& terms) {
  int error = toInit(terms);
  if (error == 0) error = toReceive(peer, terms);
  return error == 0 ? toSend(terms) : error;
}

Peer End::self() const {
  return {pair->number, gid, port.lid, reinterpret_cast<uint64_t>(data.data()), region->remoteKey};
}

int End::post(int opcode, const Peer& peer, uint32_t bytes, uint32_t flags, uint64_t id, uint32_t immediate,
              size_t offset) {
  Piece piece = {reinterpret_cast<uint64_t>(data.data()) + offset, bytes, region->localKey};
  SendRequest request = {};
  request.id = id;
  request.pieces = &piece;
  request.pieceCount = bytes > 0 ? 1 : 0;
  request.opcode = opcode;
  request.flags = flags;
  request.immediate = immediate;
  request.remoteAddress = peer.address + offset;
  request.remoteKey = peer.key;
  return postRaw(request);
}

int End::postRaw(SendRequest request) {
  SendRequest* bad = nullptr;
  return context->postSend(pair, &request, &bad);
}

int End::want(uint32_t bytes, uint64_t id) {
  Piece piece = {reinterpret_cast<uint64_t>(data.data()), bytes, region->localKey};
  ReceiveRequest request = {.id = id, .next = nullptr, .pieces = &piece, .pieceCount = bytes > 0 ? 1 : 0};
  ReceiveRequest* bad = nullptr;
  return context->postReceive(pair, &request, &bad);
}

int End::poll(Completion& completion) { return context->pollCq(queue, 1, &completion); }

bool End::await(Completion& completion, double milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double, std::milli>(milliseconds);
  do {
    if (poll(completion) > 0) return true;
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

int End::status(double milliseconds) {
  Completion completion;
  return await(completion, milliseconds) ? completion.status : -1;
}

int End::drain() {
  Completion completion;
  int count = 0;
  while (poll(completion) > 0) ++count;
  return count;
}

int End::state() {
  QueuePairAttributes attributes = {};
  QueuePairOptions options = {};
  return library_.queryPair(pair, &attributes, kMaskState, &options) == 0 ? attributes.state : -1;
}

int End::event(double milliseconds) {
  pollfd descriptor = {context->eventDescriptor, POLLIN, 0};
  if (::poll(&descriptor, 1, static_cast<int>(milliseconds)) <= 0) return -1;
  AsyncEvent event = {};
  if (library_.getAsyncEvent(context, &event) != 0) return -1;
  library_.ackAsyncEvent(&event);
  return event.type;
}

int connectBoth(End& one, End& other, const Terms& terms) {
  one.makePair(terms);
  other.makePair(terms);
  const int error = one.connect(other.self(), terms);
  return error == 0 ? other.connect(one.self(), terms) : error;
}

}  // namespace stand_in_verbs
