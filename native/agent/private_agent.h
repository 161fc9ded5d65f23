// The agent of a session: an agent on this host without a launcher, for processes that ncclrun has not started. It is
// reached at a Unix socket in the abstract namespace, whose name has the user and the session. Binding that name is
// the lock: who gets it starts the agent, who finds it taken connects to it. The kernel removes it with the last
// process that holds it, so nothing is left behind, whoever is killed.
#pragma once
#include <string>

#include "agent/session.h"
#include "base/descriptor.h"
#include "base/error.h"

namespace ncclrun {

struct PrivateAgent {
  Descriptor socket;         // connected
  std::string name;          // for sentences
  Descriptor standardError;  // what the agent says on stderr, if we have started it
  std::string command;
};

// Connects to the agent of the session; starts it if there is none. Does not wait for its welcome: an agent that cannot
// start, or that was about to end, closes the connection. Takes a few milliseconds, where another process is just
// about to listen up to some seconds. An error says what was looked for, and where.
Status reachPrivateAgent(const SessionName& session, PrivateAgent& out);

// Why an agent that we have started has closed the connection before its welcome.
Status whyEnded(const PrivateAgent& agent);

}  // namespace ncclrun
