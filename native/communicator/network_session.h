// A rank's part in the communicator of all ranks of a job, with its plan but without connections: what a measurement of
// the network needs. Every call waits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "agent/agent_client.h"
#include "agent/messages.h"
#include "base/descriptor.h"
#include "base/error.h"

namespace ncclrun {

class NetworkSession {
 public:
  NetworkSession(const ncclUniqueId& id, uint32_t size, uint32_t rank) : membership_{id, 0, size, rank} {}
  ~NetworkSession();
  NetworkSession(const NetworkSession&) = delete;
  NetworkSession& operator=(const NetworkSession&) = delete;

  Status join();
  std::span<const std::byte> plan() const { return plan_.bytes(); }
  // Through the agents: `all` has the bytes of all ranks, by rank.
  Status gather(std::span<const std::byte> own, std::vector<std::byte>& all);

 private:
  Status welcome(WelcomeMessage& out);
  Answer ask(FrameKind question, const Bytes& payload, FrameKind answer, size_t descriptors);

  Membership membership_;
  Mapping plan_;
  Descriptor listener_;  // the plan has a port of every rank; nobody connects to it
  bool joined_ = false;
  uint32_t round_ = 0;
};

}  // namespace ncclrun
