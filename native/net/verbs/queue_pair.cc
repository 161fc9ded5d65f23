#include "net/verbs/queue_pair.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/limits.h"

namespace ncclrun::net {
namespace {

constexpr uint32_t kInlineBytes = 128;
constexpr uint8_t kRnrPause = 12;          // 0.64 ms
constexpr uint8_t kRnrRetriesForEver = 7;  // a receive is posted before its advertisement, so this never lasts
constexpr uint8_t kHopLimit = 255;
// The kernel asks for the peer's Ethernet address, and waits a second for an answer, which may be lost.
constexpr int kResolutions = 4;  // after the first one

Status failure(const Card& card, uint8_t port, const char* what, int error) {
  return {ncclSystemError, std::string("a queue pair of ") + card.name() + " port " + std::to_string(port) + ": " +
                               what + ": " + std::strerror(error) + limitBehind(error) + lockedMemoryBehind(error)};
}

uint64_t prefixOf(const verbs::Gid& gid) {
  uint64_t prefix = 0;
  std::memcpy(&prefix, gid.data(), sizeof prefix);
  return prefix;
}

}  // namespace

std::string explainCompletion(int status, uint32_t vendorError) {
  const auto text = [&]() -> std::string {
    switch (status) {
      case verbs::completion_status::kLocalOperation:
        return "this side's card could not carry out a request (local operation error): its port is down, its address "
               "or route is gone, or it is a defect of the engine";
      case 1:
      case 4:
      case 8:
        return "this side's memory or request was refused by its own card (local error): memory of the transfer was "
               "unmapped or deregistered meanwhile, or it is a defect of the engine";
      case verbs::completion_status::kFlushed:
        return "the queue pair had failed before";
      case 9:
      case 10:
      case 11:
        return "the other side's card refused the access (remote error): its memory was unmapped or deregistered "
               "meanwhile, or its GPU has failed";
      case verbs::completion_status::kRetryExceeded:
        return "no packet was acknowledged (transport retries exceeded): the other process or host is gone, a cable or "
               "switch is down, the GIDs or MTUs of the two ports do not fit together, or the network loses packets "
               "(PFC, ECN)";
      case verbs::completion_status::kRnrRetryExceeded:
        return "the other side does not receive (RNR retries exceeded): its process is stopped or gone";
      case 19:
      case 21:
        return "the card reports a fatal error: look at the kernel's log (dmesg) and the card's firmware";
      case 20:
        return "the other side's card does not answer a read";
      default:
        return "the card reports an error";
    }
  }();
  return text + " (completion status " + std::to_string(status) +
         (vendorError == 0 ? "" : formatSentence(", vendor's error 0x%x", vendorError)) + ")";
}

std::string explainEvent(int event) {
  const char* text = "the card ended the queue pair";
  if (event == verbs::event::kQueuePairRequestError) text = "the other side's request was not valid";
  if (event == verbs::event::kQueuePairAccessError) text = "the other side's access was refused by this side's card";
  return std::string(text) + " (event " + std::to_string(event) + ")";
}

std::string textOf(const verbs::Gid& gid) {
  char text[INET6_ADDRSTRLEN] = {};
  return inet_ntop(AF_INET6, gid.data(), text, sizeof text) == nullptr ? "?" : text;
}

bool parseGid(const std::string& text, verbs::Gid& gid) { return inet_pton(AF_INET6, text.c_str(), gid.data()) == 1; }

Status QueuePairHandle::make(Card& card, uint8_t port, verbs::CompletionQueue& completions, const VerbsTuning& tuning,
                             std::unique_ptr<QueuePairHandle>& out) {
  std::unique_ptr<QueuePairHandle> made(new QueuePairHandle(card, port, tuning));
  verbs::QueuePairSetup setup = {};
  setup.owner = &made->event_;
  setup.sendQueue = setup.receiveQueue = &completions;
  setup.type = verbs::kReliableConnection;
  for (const uint32_t inlineBytes : {tuning.inlines ? kInlineBytes : 0, uint32_t(0)}) {
    setup.capacity = {
        .sends = kSends, .receives = kReceives, .sendEntries = 1, .receiveEntries = 1, .inlineBytes = inlineBytes};
    made->inlineBytes_ = inlineBytes;
    made->pair_ = card.library().createQp(card.domain(), &setup);
    if (made->pair_ != nullptr || inlineBytes == 0) break;  // the card may not send inline
  }
  if (made->pair_ == nullptr) return failure(card, port, "ibv_create_qp", errno);
  verbs::QueuePairAttributes attributes = {};
  attributes.state = verbs::qp_state::kInit;
  attributes.partitionIndex = tuning.partition;
  attributes.port = port;
  attributes.access = verbs::access::kRemoteWrite | verbs::access::kRemoteRead;
  using namespace verbs::qp_mask;
  NCCLRUN_TRY(made->modify(attributes, kState | kPartition | kPort | kAccess, "to the state INIT"));
  out = std::move(made);
  return {};
}

QueuePairHandle::~QueuePairHandle() {
  if (pair_ != nullptr) card_.library().destroyQp(pair_);
}

Status QueuePairHandle::modify(verbs::QueuePairAttributes attributes, int mask, const char* what) {
  int error = card_.library().modifyQp(pair_, &attributes, mask);
  for (int i = 0; i < kResolutions && error == ETIMEDOUT; i++)
    error = card_.library().modifyQp(pair_, &attributes, mask);
  return error == 0 ? Status{} : failure(card_, port_, what, error);
}

Status QueuePairHandle::connect(const Peer& peer, const PortAddress& own, int gidIndex, uint32_t psn) {
  using namespace verbs::qp_mask;
  verbs::QueuePairAttributes attributes = {};
  attributes.state = verbs::qp_state::kReadyToReceive;
  attributes.pathMtu = std::min(peer.port.mtu, own.mtu);
  attributes.destination = peer.number;
  attributes.receivePsn = peer.psn;
  attributes.maxReadsIn = 1;
  attributes.minRnrTimer = kRnrPause;
  verbs::AddressHandle& address = attributes.address;
  address.port = port_;
  address.serviceLevel = tuning_.serviceLevel;
  const bool isEthernet = own.linkLayer == verbs::kLinkEthernet;
  if (!isEthernet) address.destinationLid = peer.port.lid;
  if (isEthernet || own.needsGrh != 0 || peer.port.needsGrh != 0 || prefixOf(peer.port.gid) != prefixOf(own.gid)) {
    address.isGlobal = 1;
    address.route = {.destination = peer.port.gid,
                     .flowLabel = 0,
                     .sourceIndex = uint8_t(gidIndex),
                     .hopLimit = kHopLimit,
                     .trafficClass = tuning_.trafficClass};
  }
  NCCLRUN_TRY(modify(attributes, kState | kAddress | kMtu | kDestination | kReceivePsn | kMaxReadsIn | kMinRnrTimer,
                     ("to the state RTR, towards " + textOf(peer.port.gid)).c_str()));
  attributes = {};
  attributes.state = verbs::qp_state::kReadyToSend;
  attributes.timeout = tuning_.timeout;
  attributes.retries = tuning_.retries;
  attributes.rnrRetries = kRnrRetriesForEver;
  attributes.sendPsn = psn;
  attributes.maxReadsOut = 1;
  return modify(attributes, kState | kTimeout | kRetries | kRnrRetries | kSendPsn | kMaxReadsOut, "to the state RTS");
}

void QueuePairHandle::stop() {
  verbs::QueuePairAttributes attributes = {};
  attributes.state = verbs::qp_state::kError;
  card_.library().modifyQp(pair_, &attributes, verbs::qp_mask::kState);
}

Status QueuePairHandle::postSends(verbs::SendWorkRequest& first, uint32_t count) {
  verbs::SendWorkRequest* failed = nullptr;
  if (const int error = pair_->context->postSend(pair_, &first, &failed); error != 0)
    return failure(card_, port_, "ibv_post_send", error);
  freeSends_ -= count;
  return {};
}

Status QueuePairHandle::postReceive(uint64_t id) {
  verbs::ReceiveWorkRequest request = {.id = id, .next = nullptr, .entries = nullptr, .entryCount = 0};
  verbs::ReceiveWorkRequest* failed = nullptr;
  const int error = pair_->context->postReceive(pair_, &request, &failed);
  return error == 0 ? Status{} : failure(card_, port_, "ibv_post_recv", error);
}

}  // namespace ncclrun::net
