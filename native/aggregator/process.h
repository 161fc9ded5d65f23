// An aggregator as a process of its own, whose agent is at the other end of a socket.
#pragma once

namespace ncclrun::aggregator {

// Reads the agent's order from the socket, answers it, and serves until the agent closes its end. Returns the exit
// status.
int serveProcess(int link);

}  // namespace ncclrun::aggregator
