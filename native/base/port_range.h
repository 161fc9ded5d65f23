// The ports on which this process listens for other hosts.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace ncclrun {

// Both ends belong to it. first 0: whatever the system chooses.
struct PortRange {
  uint16_t first = 0, last = 0;
  bool isSystems() const { return first == 0; }
  uint32_t size() const { return isSystems() ? 0 : uint32_t(last) - first + 1; }
};

// LO-HI, as NCCLRUN_PORT_RANGE has it; empty text is the system's choice. False: the text is no range of unprivileged
// ports. As control/port-range.ts.
bool parsePortRange(std::string_view text, PortRange& range);

// A socket that listens at the address, on a port of the range; IPv6's "::" stands for IPv4, too. It begins at the
// `start`-th port, steps over ports that others hold, and takes `avoided` last. `flags`: of socket(). Not valid:
// `error` is that of the last attempt.
Descriptor listenWithin(sockaddr_storage address, socklen_t length, int flags, int backlog, PortRange range,
                        uint32_t start, uint16_t avoided, int& error);

// The same within NCCLRUN_PORT_RANGE, from a place that differs between the ranks of a host. MASTER_PORT is left to the
// program as long as there are others.
Descriptor listenForHosts(const sockaddr_storage& address, socklen_t length, int flags, int backlog, int& error);

// For the end of a sentence about listenForHosts(): what is wrong with the range, or portsBehind().
std::string listenersBehind(int error);

// The port of an IPv4 or IPv6 address.
uint16_t portOf(const sockaddr_storage& address);

}  // namespace ncclrun
