// Messages between processes: a Unix socket for each process in the directory that they share, and the file `control`
// there. The caller holds the world's mutex, except for helpProgress.
#pragma once
#include <poll.h>

#include "state.h"

namespace stand_in_verbs {

// Takes this process's number and listens, where there is a directory.
void openConnections();
void closeConnections();
// For the thread: what it waits for, and what it then does.
void addConnections(std::vector<pollfd>& descriptors);
void serveConnections();

// Sends a message to the process of its queue pair; a process that is gone loses it. False: the connection is full; the
// pair is pumped again when it is not.
bool transmit(const Message& message, const std::vector<Source>& sources);
// The message of the queue pair is on its way to the peer's process, or waits behind another one that is, and some of
// it has left since the last call.
bool isMoving(QueuePair& pair);

// Called where a program polls in vain: looks after the connections, which takes less time than waking a thread.
void helpProgress();

}  // namespace stand_in_verbs
