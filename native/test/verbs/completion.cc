// Completion queues and channels.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "objects.h"
#include "state.h"
#include "wire.h"

namespace stand_in_verbs {
namespace {

// What an error completion has in the members that mean nothing: a program that reads them should fail in tests.
constexpr uint32_t kGarbage = 0xdeadbeef;

uint32_t vendorError(int status) {
  if (status == kRetryExceeded) return 0x81;
  if (status == kReceiverRetryExceeded) return 0x87;
  return status == kRemoteAccess ? 0x88 : 0;
}

Completion errorCompletion(uint64_t id, uint32_t number, int status) {
  Completion completion;
  std::memset(&completion, 0xef, sizeof completion);
  completion.id = id;
  completion.number = number;
  completion.status = status;
  completion.vendorError = vendorError(status);
  completion.opcode = static_cast<int>(kGarbage);
  return completion;
}

// The queue has lost a completion: its queue pairs cannot go on.
void overrun(CompletionQueue& queue) {
  AsyncEvent event = {};
  event.completionQueue = &queue;
  event.type = kCompletionQueueError;
  raise(*static_cast<Context*>(queue.context), event);
  std::vector<QueuePair*> users;
  for (const auto& [number, pair] : world().pairs) {
    if (pair->sendQueue == &queue || pair->receiveQueue == &queue) users.push_back(pair);
  }
  for (QueuePair* const pair : users) {
    if (pair->state == kReset || pair->state == kError) continue;
    raisePair(*pair, kQueuePairFatal);
    breakPair(*pair);
  }
}

void push(CompletionQueueHandle* handle, QueuedCompletion entry, bool isSolicited) {
  auto& queue = *static_cast<CompletionQueue*>(handle);
  bool isNotified = false;
  {
    const std::lock_guard<std::mutex> lock(queue.mutex);
    if (queue.isOverrun) return;
    queue.isOverrun = queue.queued.size() >= static_cast<size_t>(queue.capacity);
    if (!queue.isOverrun) {
      isNotified =
          queue.armed == CompletionQueue::kAny || (queue.armed == CompletionQueue::kSolicitedOnly && isSolicited);
      if (isNotified) queue.armed = CompletionQueue::kOff;
      queue.queued.push_back(std::move(entry));
      queue.count.store(queue.queued.size(), std::memory_order_release);
    }
  }
  if (queue.isOverrun) {
    overrun(queue);
  } else if (isNotified && queue.channel != nullptr) {
    auto& channel = *static_cast<Channel*>(queue.channel);
    const std::lock_guard<std::mutex> lock(channel.mutex);
    channel.waiting.push_back(&queue);
    eventfd_write(channel.descriptor, 1);
  }
}

// Index of the completion that is polled next: the first, or where order is random the first of some queue of a pair.
size_t choose(const CompletionQueue& queue, std::mt19937_64& random) {
  std::vector<size_t> firsts;
  for (size_t index = 0; index < queue.queued.size(); ++index) {
    const QueuedCompletion& one = queue.queued[index];
    bool isFirst = true;
    for (const size_t first : firsts) {
      const QueuedCompletion& other = queue.queued[first];
      isFirst &= other.completion.number != one.completion.number || other.isReceive != one.isReceive;
    }
    if (isFirst) firsts.push_back(index);
  }
  return firsts[random() % firsts.size()];
}

}  // namespace

void complete(QueuePair& pair, const Work& work, int status) {
  if (status == kSuccess && !work.isSignaled) return;
  Completion completion = errorCompletion(work.id, pair.number, status);
  if (status == kSuccess) {
    const bool isSend = work.opcode == kSend || work.opcode == kSendImmediate;
    completion = {};
    completion.id = work.id;
    completion.opcode = isSend ? kSent : work.opcode == kRead ? kHasRead : kWritten;
    completion.bytes = work.bytes;
    completion.number = pair.number;
  }
  push(pair.sendQueue, {completion, pair.places, work.index + 1, false}, status != kSuccess);
}

void completeReceive(QueuePair& pair, const PostedReceive& receive, int status, const Message* message) {
  Completion completion = errorCompletion(receive.id, pair.number, status);
  if (status == kSuccess) {
    const bool hasImmediate = message->opcode == kWriteImmediate || message->opcode == kSendImmediate;
    completion = {};
    completion.id = receive.id;
    completion.opcode = message->opcode == kWriteImmediate ? kReceivedImmediate : kReceived;
    completion.bytes = message->bytes;
    completion.immediate = hasImmediate ? message->immediate : 0;
    completion.flags = hasImmediate ? 2 : 0;
    completion.number = pair.number;
    completion.peer = message->from;
  }
  const bool isSolicited = status != kSuccess || (message != nullptr && message->isSolicited != 0);
  push(pair.receiveQueue, {completion, pair.places, receive.index + 1, true}, isSolicited);
}

void cleanQueue(CompletionQueueHandle* handle, const QueuePair& pair) {
  auto& queue = *static_cast<CompletionQueue*>(handle);
  const std::lock_guard<std::mutex> lock(queue.mutex);
  std::erase_if(queue.queued, [&](const QueuedCompletion& one) { return one.completion.number == pair.number; });
  queue.count.store(queue.queued.size(), std::memory_order_release);
}

// Without the world's mutex.
int pollCompletions(CompletionQueueHandle* handle, int wanted, Completion* completions) {
  auto& queue = *static_cast<CompletionQueue*>(handle);
  if (queue.count.load(std::memory_order_acquire) == 0) {
    helpProgress();
    if (queue.count.load(std::memory_order_acquire) == 0) return 0;
  }
  const std::lock_guard<std::mutex> lock(queue.mutex);
  thread_local std::mt19937_64 random(7);
  const bool isRandom = world().reorders.load(std::memory_order_relaxed);
  int got = 0;
  for (; got < wanted && !queue.queued.empty(); ++got) {
    const auto chosen = queue.queued.begin() + static_cast<long>(isRandom ? choose(queue, random) : 0);
    completions[got] = chosen->completion;
    (chosen->isReceive ? chosen->places->receives : chosen->places->sends)
        .store(chosen->released, std::memory_order_release);
    queue.queued.erase(chosen);
  }
  queue.count.store(queue.queued.size(), std::memory_order_release);
  return got;
}

// Without the world's mutex.
int requestNotification(CompletionQueueHandle* handle, int solicitedOnly) {
  auto& queue = *static_cast<CompletionQueue*>(handle);
  const std::lock_guard<std::mutex> lock(queue.mutex);
  if (solicitedOnly == 0) {
    queue.armed = CompletionQueue::kAny;
  } else if (queue.armed == CompletionQueue::kOff) {
    queue.armed = CompletionQueue::kSolicitedOnly;
  }
  return 0;
}

}  // namespace stand_in_verbs

using namespace stand_in_verbs;

STAND_IN_EXPORT ChannelHandle* ibv_create_comp_channel(ContextHandle* context) {
  World& all = world();
  const Lock lock(all.mutex);
  require(context, "ibv_create_comp_channel");
  const int error = refused("channel", *static_cast<Context*>(context)->adapter);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const channel = new Channel();
  channel->context = context;
  channel->descriptor = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  channel->references = 0;
  all.live.insert(channel);
  ++all.channelCount;
  return channel;
}

STAND_IN_EXPORT int ibv_destroy_comp_channel(ChannelHandle* handle) {
  World& all = world();
  const Lock lock(all.mutex);
  require(handle, "ibv_destroy_comp_channel");
  if (handle->references > 0) return EBUSY;
  auto* const channel = static_cast<Channel*>(handle);
  close(channel->descriptor);
  all.live.erase(channel);
  --all.channelCount;
  delete channel;
  return 0;
}

STAND_IN_EXPORT CompletionQueueHandle* ibv_create_cq(ContextHandle* context, int capacity, void* user,
                                                     ChannelHandle* channel, int vector) {
  World& all = world();
  const Lock lock(all.mutex);
  require(context, "ibv_create_cq");
  const Adapter& adapter = *static_cast<Context*>(context)->adapter;
  int error = refused("cq", adapter);
  if (error == 0 && (capacity < 1 || capacity > adapter.configuration.completions)) error = EINVAL;
  if (error == 0 && (vector < 0 || vector >= context->completionVectors)) error = EINVAL;
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const queue = new CompletionQueue();
  queue->context = context;
  queue->channel = channel;
  queue->user = user;
  queue->capacity = capacity;
  if (channel != nullptr) ++channel->references;
  all.live.insert(queue);
  all.queues.push_back(queue);
  return queue;
}

STAND_IN_EXPORT int ibv_destroy_cq(CompletionQueueHandle* handle) {
  World& all = world();
  Lock lock(all.mutex);
  require(handle, "ibv_destroy_cq");
  auto* const queue = static_cast<CompletionQueue*>(handle);
  if (queue->users > 0) return EBUSY;
  forgetEvents(queue);
  if (queue->channel != nullptr) {
    auto& channel = *static_cast<Channel*>(queue->channel);
    const std::lock_guard<std::mutex> channelLock(channel.mutex);
    std::erase(channel.waiting, queue);
    --channel.references;
  }
  all.acknowledged.wait(lock, [queue] {
    const std::lock_guard<std::mutex> queueLock(queue->mutex);
    return queue->notified == queue->acknowledged && queue->asyncTaken == queue->asyncAcknowledged;
  });
  all.live.erase(queue);
  std::erase(all.queues, queue);
  delete queue;
  return 0;
}

STAND_IN_EXPORT int ibv_get_cq_event(ChannelHandle* handle, CompletionQueueHandle** queue, void** user) {
  auto& channel = *static_cast<Channel*>(handle);
  for (;;) {
    uint64_t one = 0;
    if (read(channel.descriptor, &one, sizeof one) != sizeof one) return -1;
    const std::lock_guard<std::mutex> lock(channel.mutex);
    if (channel.waiting.empty()) continue;  // of a queue that was destroyed
    CompletionQueue* const found = channel.waiting.front();
    channel.waiting.pop_front();
    const std::lock_guard<std::mutex> queueLock(found->mutex);
    ++found->notified;
    *queue = found;
    *user = found->user;
    return 0;
  }
}

STAND_IN_EXPORT void ibv_ack_cq_events(CompletionQueueHandle* handle, unsigned count) {
  World& all = world();
  const Lock lock(all.mutex);
  require(handle, "ibv_ack_cq_events");
  auto& queue = *static_cast<CompletionQueue*>(handle);
  const std::lock_guard<std::mutex> queueLock(queue.mutex);
  queue.acknowledged += count;
  all.acknowledged.notify_all();
}
