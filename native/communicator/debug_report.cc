#include "communicator/debug_report.h"

#include <strings.h>

#include <array>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/debug.h"
#include "base/variables.h"
#include "datapath/nic_list.h"

namespace ncclrun {
namespace {

// In the order of plan/plan_format.h.
constexpr std::array kCollectives = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                                     "alltoall",   "gather",     "scatter",        "sendrecv",  "barrier"};
constexpr std::array kAlgorithms = {"one-shot direct", "two-shot direct", "ring",  "tree",
                                    "CollNet",         "copy engines",    "rails", "CollNet chains"};
constexpr std::array kProtocols = {"Simple", "LL", "LL128"};
constexpr std::array kTransports = {"shared memory", "sockets", "peer-to-peer", "InfiniBand", "a plugin"};

template <size_t count>
const char* nameIn(const std::array<const char*, count>& names, uint32_t number) {
  return number < count ? names[number] : "unknown";
}

Subsystem aboutTransport(uint32_t transport) {
  if (transport == uint32_t(plan::Transport::shm)) return Subsystem::shm;
  return transport == uint32_t(plan::Transport::p2p) ? Subsystem::p2p : Subsystem::net;
}

void logConnections(const std::string& who, const DataPath& path) {
  std::vector<ncclrunEdge> edges(path.edges({}));
  edges.resize(std::min(edges.size(), path.edges(edges)));
  for (const ncclrunEdge& edge : edges) {
    if (edge.channel == ~0u) continue;  // of two ranks: made at first use
    logInfo(formatSentence("%s: channel %u: ring %s rank %u by %s", who.c_str(), edge.channel,
                           edge.sends != 0 ? "to" : "from", edge.peer, nameIn(kTransports, edge.transport)),
            aboutTransport(edge.transport));
  }
}

// A line for each collective: what its operations take, by size.
void logVariants(const std::string& who, const DataPath& path) {
  for (uint8_t collective = 0; collective < kCollectives.size(); collective++) {
    std::string line;
    for (uint64_t bytes = 0;;) {
      ncclrunVariant variant{};
      if (!path.variant(plan::Collective(collective), bytes, variant).ok()) break;
      const std::string size =
          variant.upToBytes == ~0ull ? "larger" : formatSentence("up to %llu B", (unsigned long long)variant.upToBytes);
      line += formatSentence("%s%s: %s, %s, %u channels", line.empty() ? "" : "; ", size.c_str(),
                             nameIn(kAlgorithms, variant.algorithm), nameIn(kProtocols, variant.protocol),
                             variant.channels);
      if (variant.upToBytes == ~0ull || variant.upToBytes < bytes) break;
      bytes = variant.upToBytes + 1;
    }
    if (!line.empty())
      logInfo(formatSentence("%s: %s: %s", who.c_str(), kCollectives[collective], line.c_str()), Subsystem::tuning);
  }
}

// As with NCCL, naming the algorithm does not turn it on.
void logCollnet(const std::string& who) {
  const char* const algorithms = ncclVariable("NCCL_ALGO");
  const char* const enabled = ncclVariable("NCCL_COLLNET_ENABLE");
  if (algorithms == nullptr || strcasestr(algorithms, "collnet") == nullptr) return;
  if (std::strchr(algorithms, '^') != nullptr || (enabled != nullptr && std::strcmp(enabled, "1") == 0)) return;
  logInfo(who + ": NCCL_ALGO names CollNet, which is off: NCCL_COLLNET_ENABLE=1 turns it on", Subsystem::tuning);
}

}  // namespace

void logReady(const std::string& who, const DataPath& path, const SetupTimes& times) {
  if (!debugs(DebugLevel::info)) return;
  ncclrunCommInfo info{};
  path.info(info);
  const uint64_t now = nowNanoseconds();
  const auto milliseconds = [](uint64_t from, uint64_t to) { return static_cast<double>(to - from) * 1e-6; };
  logInfo(
      formatSentence("%s: ready: %u ranks on %u hosts, %u on this one, after %.1f ms: plan %.1f, connections %.1f, "
                     "barrier %.1f",
                     who.c_str(), info.size, info.hosts, info.localSize, milliseconds(times.begun, now),
                     milliseconds(times.begun, times.planned), milliseconds(times.planned, times.connected),
                     milliseconds(times.connected, now)));
  logConnections(who, path);
  logVariants(who, path);
  if (info.hosts > 1) logCollnet(who);
}

void logNetwork(const std::string& who, std::span<const std::byte> plan) {
  if (!debugs(DebugLevel::info)) return;
  const std::string network = describeNetwork(plan);
  if (!network.empty()) logInfo(who + ": " + network, Subsystem::net);
}

}  // namespace ncclrun
