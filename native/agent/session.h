// Processes that ncclrun has not started and that share a private agent (private_agent.h). A session has no list of its
// members: whoever joins by a unique id belongs to the session that the id names, for good, since a process has one
// agent. What has to be settled is which session an id names whose maker belongs to none yet: the ids that a job's
// processes make before they have met should name the same. See ARCHITECTURE.md.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace ncclrun {

using SessionName = std::array<uint8_t, 16>;

// What the ids that this process makes are to name: its session; while it belongs to none the job that the environment
// tells of, or chance. ncclSystemError if the kernel gives no random bytes.
Status currentSession(SessionName& name);

// This process belongs to `name` from now on. False if it belongs to another one.
bool enterSession(const SessionName& name);

// For sentences and the name of the agent's socket: the name in hexadecimal.
std::string sessionText(const SessionName& name);

}  // namespace ncclrun
