// Queue pairs: their life and their states.
#include <cerrno>

#include "state.h"

namespace stand_in_verbs {
namespace {

struct Transition {
  int from, to, required, optional;
};

// Of a reliable connection, as the InfiniBand specification's table of modify has them (and the kernel checks).
constexpr Transition kTransitions[] = {
    {kReset, kInit, kMaskPartitionKey | kMaskPort | kMaskAccess, 0},
    {kInit, kInit, 0, kMaskPartitionKey | kMaskPort | kMaskAccess},
    {kInit, kReadyToReceive,
     kMaskPath | kMaskMtu | kMaskPeer | kMaskReceiveNumber | kMaskPeerReads | kMaskReceiverTimer,
     kMaskAlternative | kMaskAccess | kMaskPartitionKey},
    {kReadyToReceive, kReadyToSend, kMaskTimeout | kMaskRetries | kMaskReceiverRetries | kMaskSendNumber | kMaskReads,
     kMaskCurrentState | kMaskAlternative | kMaskAccess | kMaskReceiverTimer | kMaskMigration},
    {kReadyToSend, kReadyToSend, 0,
     kMaskCurrentState | kMaskAccess | kMaskAlternative | kMaskReceiverTimer | kMaskMigration},
};

bool isAllowed(int from, int to, int mask) {
  if (to == kReset || to == kError) return mask == 0;
  for (const Transition& one : kTransitions) {
    if (one.from != from || one.to != to) continue;
    return (mask & one.required) == one.required && (mask & ~(one.required | one.optional)) == 0;
  }
  return false;
}

bool isNone(const Gid& gid) { return (gid.halves[0] | gid.halves[1]) == 0; }

// 0, or the error that a device answers for these values.
int check(const QueuePair& pair, const QueuePairAttributes& wanted, int mask) {
  const std::vector<Port>& ports = pair.adapter->ports;
  const auto hasPort = [&](int number) { return number >= 1 && number <= static_cast<int>(ports.size()); };
  if ((mask & kMaskPort) != 0 && !hasPort(wanted.port)) return EINVAL;
  if ((mask & kMaskPartitionKey) != 0) {
    const int number = (mask & kMaskPort) != 0 ? wanted.port : pair.attributes.port;
    if (!hasPort(number) || wanted.partitionKey >= ports[size_t(number) - 1].configuration.partitionKeys) return EINVAL;
  }
  if ((mask & kMaskTimeout) != 0 && wanted.timeout > 31) return EINVAL;
  if ((mask & kMaskRetries) != 0 && wanted.retries > 7) return EINVAL;
  if ((mask & kMaskReceiverRetries) != 0 && wanted.receiverRetries > 7) return EINVAL;
  if ((mask & kMaskReceiverTimer) != 0 && wanted.receiverTimer > 31) return EINVAL;
  if ((mask & kMaskReads) != 0 && wanted.reads > 128) return EINVAL;
  if ((mask & kMaskPeerReads) != 0 && wanted.peerReads > 128) return EINVAL;
  if ((mask & kMaskPath) == 0) return 0;
  const PathAddress& path = wanted.path;
  if (!hasPort(path.port)) return EINVAL;
  const Port& port = ports[path.port - 1u];
  if (wanted.mtu < 1 || wanted.mtu > port.configuration.mtu) return EINVAL;
  const bool isEthernet = port.configuration.link == kLinkEthernet;
  if (isEthernet && path.isGlobal == 0) return EINVAL;
  if (path.isGlobal == 0) return path.lid == 0 ? EINVAL : 0;
  if (path.gidIndex >= port.gids.size() || isNone(port.gids[path.gidIndex])) return EINVAL;
  return isEthernet && isNone(path.gid) ? EINVAL : 0;
}

void take(QueuePairAttributes& own, const QueuePairAttributes& wanted, int mask) {
  if ((mask & kMaskAccess) != 0) own.access = wanted.access;
  if ((mask & kMaskPartitionKey) != 0) own.partitionKey = wanted.partitionKey;
  if ((mask & kMaskPort) != 0) own.port = wanted.port;
  if ((mask & kMaskPath) != 0) own.path = wanted.path;
  if ((mask & kMaskMtu) != 0) own.mtu = wanted.mtu;
  if ((mask & kMaskTimeout) != 0) own.timeout = wanted.timeout;
  if ((mask & kMaskRetries) != 0) own.retries = wanted.retries;
  if ((mask & kMaskReceiverRetries) != 0) own.receiverRetries = wanted.receiverRetries;
  if ((mask & kMaskReceiveNumber) != 0) own.receiveNumber = wanted.receiveNumber & 0xffffff;
  if ((mask & kMaskSendNumber) != 0) own.sendNumber = wanted.sendNumber & 0xffffff;
  if ((mask & kMaskReads) != 0) own.reads = wanted.reads;
  if ((mask & kMaskPeerReads) != 0) own.peerReads = wanted.peerReads;
  if ((mask & kMaskReceiverTimer) != 0) own.receiverTimer = wanted.receiverTimer;
  if ((mask & kMaskPeer) != 0) own.peer = wanted.peer & 0xffffff;
}

// As it was created: nothing is posted, and nothing of it completes.
void reset(QueuePair& pair) {
  disarm(pair);
  pair.works.clear();
  pair.receives.clear();
  pair.sent = 0;
  pair.isBlocked = false;
  pair.tries = pair.receiverTries = 0;
  pair.answerDue = kNever;
  pair.pausedUntil = Time::min();
  pair.places->sends.store(pair.sendsPosted);
  pair.places->receives.store(pair.receivesPosted);
  pair.attributes = {};
}

uint32_t nextNumber() {
  World& all = world();
  do {
    all.lastPair = all.lastPair % 4095 + 1;
  } while (all.pairs.count(all.slot << 12 | all.lastPair) != 0);
  return all.slot << 12 | all.lastPair;
}

int checkOptions(const Adapter& adapter, const QueuePairOptions& options) {
  const Capacity& wanted = options.capacity;
  const auto most = static_cast<uint32_t>(adapter.configuration.workRequests);
  const auto pieces = static_cast<uint32_t>(adapter.configuration.scatter);
  if (options.type != kReliable || options.sharedQueue != nullptr) return EOPNOTSUPP;
  if (options.sendQueue == nullptr || options.receiveQueue == nullptr) return EINVAL;
  if (wanted.sends > most || wanted.receives > most || wanted.inlineBytes > adapter.configuration.inlineBytes) {
    return EINVAL;
  }
  if (wanted.sendScatter > pieces || wanted.receiveScatter > pieces) return EINVAL;
  return adapter.queuePairs >= adapter.configuration.queuePairs || world().pairs.size() >= 4000 ? ENOMEM : 0;
}

}  // namespace
}  // namespace stand_in_verbs

using namespace stand_in_verbs;

STAND_IN_EXPORT QueuePairHandle* ibv_create_qp(DomainHandle* domain, QueuePairOptions* options) {
  World& all = world();
  const Lock lock(all.mutex);
  require(domain, "ibv_create_qp");
  Adapter& adapter = *static_cast<Context*>(domain->context)->adapter;
  int error = refused("qp", adapter);
  if (error == 0) error = checkOptions(adapter, *options);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  require(options->sendQueue, "ibv_create_qp");
  require(options->receiveQueue, "ibv_create_qp");
  auto* const pair = new QueuePair();
  pair->context = domain->context;
  pair->user = options->user;
  pair->domain = domain;
  pair->sendQueue = options->sendQueue;
  pair->receiveQueue = options->receiveQueue;
  pair->number = pair->handle = nextNumber();
  pair->type = options->type;
  pair->adapter = &adapter;
  pair->options = *options;
  ++adapter.queuePairs;
  ++static_cast<Domain*>(domain)->users;
  ++static_cast<CompletionQueue*>(options->sendQueue)->users;
  ++static_cast<CompletionQueue*>(options->receiveQueue)->users;
  all.pairs[pair->number] = pair;
  all.live.insert(pair);
  return pair;
}

STAND_IN_EXPORT int ibv_modify_qp(QueuePairHandle* handle, QueuePairAttributes* attributes, int mask) {
  const Lock lock(world().mutex);
  require(handle, "ibv_modify_qp");
  auto& pair = *static_cast<QueuePair*>(handle);
  int error = refused("modify", *pair.adapter);
  if (error != 0) return error;
  const int to = (mask & kMaskState) != 0 ? attributes->state : pair.state;
  mask &= ~kMaskState;
  if (!isAllowed(pair.state, to, mask)) return EINVAL;
  error = check(pair, *attributes, mask);
  if (error != 0) return error;
  if (to == kReset) {
    reset(pair);
    pair.state = to;
    return 0;
  }
  if (to == kError) {
    breakPair(pair);
    return 0;
  }
  if (pair.adapter->isBroken) return EIO;
  take(pair.attributes, *attributes, mask);
  if (pair.state != to && to == kReadyToReceive) pair.expectedNumber = pair.attributes.receiveNumber;
  if (pair.state != to && to == kReadyToSend) pair.nextNumber = pair.attributes.sendNumber;
  pair.state = to;
  return 0;
}

STAND_IN_EXPORT int ibv_query_qp(QueuePairHandle* handle, QueuePairAttributes* attributes, int,
                                 QueuePairOptions* options) {
  const Lock lock(world().mutex);
  require(handle, "ibv_query_qp");
  const auto& pair = *static_cast<QueuePair*>(handle);
  *attributes = pair.attributes;
  attributes->state = attributes->currentState = pair.state;
  attributes->sendNumber = pair.nextNumber;
  attributes->receiveNumber = pair.expectedNumber;
  attributes->capacity = pair.options.capacity;
  if (options != nullptr) *options = pair.options;
  return 0;
}

STAND_IN_EXPORT int ibv_destroy_qp(QueuePairHandle* handle) {
  World& all = world();
  Lock lock(all.mutex);
  require(handle, "ibv_destroy_qp");
  auto* const pair = static_cast<QueuePair*>(handle);
  forgetEvents(pair);
  disarm(*pair);
  all.pairs.erase(pair->number);
  all.acknowledged.wait(lock, [pair] { return pair->asyncTaken == pair->asyncAcknowledged; });
  if (all.configuration.cleansQueues) {
    cleanQueue(pair->sendQueue, *pair);
    cleanQueue(pair->receiveQueue, *pair);
  }
  all.live.erase(pair);
  --pair->adapter->queuePairs;
  --static_cast<Domain*>(pair->QueuePairHandle::domain)->users;
  --static_cast<CompletionQueue*>(pair->sendQueue)->users;
  --static_cast<CompletionQueue*>(pair->receiveQueue)->users;
  delete pair;
  return 0;
}

STAND_IN_EXPORT int ibv_query_ece(QueuePairHandle*, void*) { return EOPNOTSUPP; }
STAND_IN_EXPORT int ibv_set_ece(QueuePairHandle*, void*) { return EOPNOTSUPP; }
