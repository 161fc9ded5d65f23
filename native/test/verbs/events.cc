// Asynchronous events, and the names of numbers.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "state.h"

namespace stand_in_verbs {

void raise(Context& context, const AsyncEvent& event) {
  context.events.push_back({event});
  eventfd_write(context.eventDescriptor, 1);
}

void raisePort(Adapter& adapter, int port, int type) {
  AsyncEvent event = {};
  event.port = port;
  event.type = type;
  for (Context* const context : world().contexts) {
    if (context->adapter == &adapter) raise(*context, event);
  }
}

void raisePair(QueuePair& pair, int type) {
  AsyncEvent event = {};
  event.queuePair = &pair;
  event.type = type;
  raise(*static_cast<Context*>(pair.context), event);
}

namespace {

bool isOfPair(int type) { return (type >= 1 && type <= 7) || type == 16; }
bool isOf(const AsyncEvent& event, const void* object) {
  if (isOfPair(event.type)) return event.queuePair == object;
  return event.type == kCompletionQueueError && event.completionQueue == object;
}

}  // namespace

void forgetEvents(const void* object) {
  for (Context* const context : world().contexts) {
    for (PendingEvent& pending : context->events) {
      if (isOf(pending.event, object)) pending.isVoid = true;
    }
  }
}

void setPort(Adapter& adapter, int number, bool isUp) {
  Port& port = adapter.ports[static_cast<size_t>(number) - 1];
  if ((port.state == 4) == isUp) return;
  port.state = isUp ? 4 : 1;
  raisePort(adapter, number, isUp ? kPortActive : kPortError);
}

}  // namespace stand_in_verbs

using namespace stand_in_verbs;

STAND_IN_EXPORT int ibv_get_async_event(ContextHandle* handle, AsyncEvent* event) {
  World& all = world();
  auto& context = *static_cast<Context*>(handle);
  for (;;) {
    uint64_t one = 0;
    if (read(context.eventDescriptor, &one, sizeof one) != sizeof one) return -1;
    const Lock lock(all.mutex);
    const PendingEvent pending = context.events.front();
    context.events.pop_front();
    if (pending.isVoid) continue;
    *event = pending.event;
    if (isOfPair(event->type)) ++static_cast<QueuePair*>(event->queuePair)->asyncTaken;
    if (event->type == kCompletionQueueError) ++static_cast<CompletionQueue*>(event->completionQueue)->asyncTaken;
    return 0;
  }
}

STAND_IN_EXPORT void ibv_ack_async_event(AsyncEvent* event) {
  World& all = world();
  const Lock lock(all.mutex);
  if (isOfPair(event->type)) {
    require(event->queuePair, "ibv_ack_async_event");
    ++static_cast<QueuePair*>(event->queuePair)->asyncAcknowledged;
  } else if (event->type == kCompletionQueueError) {
    require(event->completionQueue, "ibv_ack_async_event");
    ++static_cast<CompletionQueue*>(event->completionQueue)->asyncAcknowledged;
  }
  all.acknowledged.notify_all();
}

STAND_IN_EXPORT const char* ibv_event_type_str(int event) {
  static constexpr const char* kNames[] = {"CQ error",
                                           "local work queue catastrophic error",
                                           "Invalid Request Local Work Queue Error",
                                           "local access violation work queue error",
                                           "communication established",
                                           "send queue drained",
                                           "path migrated",
                                           "path migration request error",
                                           "local catastrophic error",
                                           "port active",
                                           "port error",
                                           "LID change",
                                           "P_Key change",
                                           "SM change",
                                           "SRQ catastrophic error",
                                           "SRQ limit reached",
                                           "last WQE reached",
                                           "client reregistration",
                                           "GID table change"};
  return event < 0 || event > kGidChange ? "unknown" : kNames[event];
}

STAND_IN_EXPORT const char* ibv_wc_status_str(int status) {
  static constexpr const char* kNames[] = {"success",
                                           "local length error",
                                           "local QP operation error",
                                           "local EE context operation error",
                                           "local protection error",
                                           "Work Request Flushed Error",
                                           "memory management operation error",
                                           "bad response error",
                                           "local access error",
                                           "remote invalid request error",
                                           "remote access error",
                                           "remote operation error",
                                           "transport retry counter exceeded",
                                           "RNR retry counter exceeded",
                                           "local RDD violation error",
                                           "remote invalid RD request",
                                           "aborted error",
                                           "invalid EE context number",
                                           "invalid EE context state",
                                           "fatal error",
                                           "response timeout error",
                                           "general error"};
  return status < 0 || status > 21 ? "unknown" : kNames[status];
}
