// The variants that the engine has on each device; control/plan/possible.ts is the planner's twin.
#pragma once
#include <string>

#include "plan/plan_format.h"

namespace ncclrun {

// Whether the device can carry out the collective by this variant.
bool hasVariant(plan::Device device, plan::Collective collective, const plan::VariantRecord& variant);
// The same, of what hasVariant() has, between GPUs of several hosts, whose proxies carry slots of protocol Simple and,
// over a network that cannot reach a GPU's memory, LL. A barrier is a reduction there. pairChannels: the first
// channels, on which pairs have connections, which all algorithms use but rings and rails.
bool hasVariantBetweenGpuHosts(plan::Collective collective, const plan::VariantRecord& variant, uint32_t ranks,
                               uint32_t pairChannels);

// The network reduces on the way, in one form or the other (algorithm/collnet.h).
inline bool isCollnet(plan::Algorithm algorithm) {
  return algorithm == plan::Algorithm::collnet || algorithm == plan::Algorithm::collnetChain;
}

// Whether rails can connect hosts that have so many ranks each; 0: they have unlike numbers. A block on a GPU has few
// connections.
bool hasRails(plan::Device device, uint32_t hosts, uint32_t ranksOfEach);

// Whether the engine has the transport between two ranks of the device, of one host or of different ones.
bool hasTransport(plan::Device device, bool sameHost, uint8_t transport);

// Whether the transport goes over NICs.
inline bool isNetwork(uint8_t transport) {
  return transport == uint8_t(plan::Transport::socket) || transport == uint8_t(plan::Transport::ib) ||
         transport == uint8_t(plan::Transport::plugin);
}

const char* nameOf(plan::Device device);
const char* nameOf(plan::Collective collective);
// "algorithm ring with protocol ll": the names are those of a plan file.
std::string nameOf(const plan::VariantRecord& variant);

}  // namespace ncclrun
