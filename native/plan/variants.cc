#include "plan/variants.h"

#include <iterator>

#include "plan/launch_format.h"

namespace ncclrun {

using plan::Algorithm;
using plan::Collective;
using plan::Device;
using plan::Protocol;

bool hasVariant(Device device, Collective collective, const plan::VariantRecord& variant) {
  if (device == Device::host) {
    // Sends and receives meet by their order alone: the two sides must not choose a protocol by different sizes.
    const bool ll = variant.protocol == uint8_t(Protocol::ll) && collective != Collective::sendRecv;
    if (variant.protocol != uint8_t(Protocol::simple) && !ll) return false;
  }
  const auto algorithm = Algorithm(variant.algorithm);
  const bool ring = algorithm == Algorithm::ring;
  const bool tree = algorithm == Algorithm::tree;
  const bool direct = algorithm == Algorithm::directOneShot;
  const bool rail = algorithm == Algorithm::rail;
  const bool isLL = variant.protocol == uint8_t(Protocol::ll);
  if (isCollnet(algorithm)) {
    return collective == Collective::allReduce && variant.protocol == uint8_t(Protocol::simple) &&
           (variant.requires_ & plan::kRequiresNetworkReduction) != 0;
  }
  if (rail && variant.protocol != uint8_t(Protocol::simple) && (device == Device::host || !isLL)) return false;
  if (algorithm == Algorithm::copyEngine) {
    return device == Device::cuda && (variant.requires_ & plan::kRequiresPublishedAddresses) != 0 &&
           collective != Collective::reduce && collective != Collective::barrier;
  }
  switch (collective) {
    case Collective::allReduce:
      return ring || tree || direct || algorithm == Algorithm::directTwoShot || rail;
    case Collective::broadcast:
    case Collective::reduce:
      return ring || tree || direct;
    case Collective::allGather:
    case Collective::reduceScatter:
      return ring || direct || rail;
    case Collective::barrier:
      return ring || direct;
    case Collective::allToAll:
    case Collective::gather:
    case Collective::scatter:
      return direct;
    case Collective::sendRecv:
      return true;
  }
  return false;
}

bool hasRails(Device device, uint32_t hosts, uint32_t ranksOfEach) {
  if (hosts < 2 || ranksOfEach < 2) return false;
  return device == Device::host || ranksOfEach + hosts - 2 <= cuda::kMaxPeers;
}

bool hasVariantBetweenGpuHosts(Collective collective, const plan::VariantRecord& variant, uint32_t ranks,
                               uint32_t pairChannels) {
  if (collective == Collective::barrier) return true;
  const bool asMessages =
      collective == Collective::allToAll || collective == Collective::gather || collective == Collective::scatter;
  // Only the proxy makes lines of what has arrived, so it has to reach the slots.
  const bool isLL = variant.protocol == uint8_t(Protocol::ll) && (variant.requires_ & plan::kRequiresHostSlots) != 0;
  if (variant.protocol != uint8_t(Protocol::simple) && !isLL) return false;
  if (((variant.flags & plan::kAsMessages) != 0) != asMessages) return false;
  const auto algorithm = Algorithm(variant.algorithm);
  if (asMessages || collective == Collective::sendRecv) return algorithm == Algorithm::directOneShot;
  // Rings have no slots of their own for LL: they use those of pairs.
  if (algorithm == Algorithm::ring) return !isLL || variant.channels <= pairChannels;
  if (algorithm == Algorithm::rail) return true;
  if (isCollnet(algorithm)) return hasVariant(plan::Device::cuda, collective, variant);
  const bool direct = algorithm == Algorithm::directOneShot || algorithm == Algorithm::directTwoShot;
  return variant.channels <= pairChannels && (algorithm == Algorithm::tree || (direct && ranks <= cuda::kMaxPeers));
}

bool hasTransport(Device device, bool sameHost, uint8_t transport) {
  const bool network = transport == uint8_t(plan::Transport::socket) || transport == uint8_t(plan::Transport::ib);
  const bool shm = transport == uint8_t(plan::Transport::shm);
  if (!sameHost) return network;
  return shm || (device == Device::host ? network : transport == uint8_t(plan::Transport::p2p));
}

const char* nameOf(Device device) { return device == Device::host ? "host" : "CUDA"; }

const char* nameOf(Collective collective) {
  static constexpr const char* kNames[] = {"allReduce", "allGather", "reduceScatter", "broadcast", "reduce",
                                           "allToAll",  "gather",    "scatter",       "sendRecv",  "barrier"};
  return uint8_t(collective) < std::size(kNames) ? kNames[uint8_t(collective)] : "?";
}

std::string nameOf(const plan::VariantRecord& variant) {
  static constexpr const char* kAlgorithms[] = {"directOneShot", "directTwoShot", "ring", "tree",
                                                "collnet",       "copyEngine",    "rail", "collnetChain"};
  static constexpr const char* kProtocols[] = {"simple", "ll", "ll128"};
  const char* algorithm = variant.algorithm < std::size(kAlgorithms) ? kAlgorithms[variant.algorithm] : "?";
  const char* protocol = variant.protocol < std::size(kProtocols) ? kProtocols[variant.protocol] : "?";
  return std::string("algorithm ") + algorithm + " with protocol " + protocol;
}

}  // namespace ncclrun
