// The calls of a context's table.
#pragma once
#include "interface.h"

namespace stand_in_verbs {

int pollCompletions(CompletionQueueHandle* queue, int wanted, Completion* completions);
int requestNotification(CompletionQueueHandle* queue, int solicitedOnly);
int postSend(QueuePairHandle* pair, SendRequest* requests, SendRequest** bad);
int postReceive(QueuePairHandle* pair, ReceiveRequest* requests, ReceiveRequest** bad);

}  // namespace stand_in_verbs
