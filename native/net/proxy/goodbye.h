// What a rank says as it leaves the communicator.
#pragma once
#include "datapath/interrupt.h"
#include "net/oob/message.h"

namespace ncclrun {

// Goodbye to the ranks that stay.
inline net::OobMessage goodbyeFor(const Interrupt& interrupt) {
  const Status differing = interrupt.differing();
  net::OobMessage goodbye{.kind = net::OobKind::goodbye};
  goodbye.result = uint32_t(interrupt.raised() ? ncclRemoteError : ncclSuccess);
  if (!differing.ok()) goodbye.result = uint32_t(differing.code);
  differing.sentence.copy(goodbye.sentence.data(), goodbye.sentence.size() - 1);
  return goodbye;
}

}  // namespace ncclrun
