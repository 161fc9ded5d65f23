#include "net/proxy/choose_network.h"

#include <strings.h>

#include <array>
#include <utility>

#include "net/plugin/load.h"
#include "net/socket/socket_network.h"
#include "net/verbs/verbs_network.h"

namespace ncclrun::net {
namespace {

// Plugins know communicators by number; the same on all ranks, and not the token itself.
uint64_t numberOf(const Token& token) { return derivedNumber(token, std::array<uint8_t, 4>{'p', 'l', 'u', 'g'}); }

Status unknownNetwork(const std::string& wanted, const plugin::Selection& selection) {
  std::string names;
  for (const std::string& name : selection.names) names += name + ", ";
  Status status{ncclInvalidUsage,
                "NCCL_NET=" + wanted + ": this host has no such network; it has " + names + kSocketNetwork};
  for (const std::string& reason : selection.reasons) status.sentence += "; " + reason;
  return status;
}

SocketConfig socketsOf(const PlanView& plan, const Token& token) {
  const auto& header = plan.header();
  SocketConfig config;
  config.token = token;
  config.sockets = header.sockets;
  config.helpers = header.socketThreads;
  config.clearsEvents = header.device == uint8_t(plan::Device::cuda);  // NetTransport::moveDevice()
  for (uint32_t i = 0; i < plan.nicCount(); i++) {
    config.devices.push_back({.interface = std::string(plan.nicName(i)),
                              .address = std::string(plan.nicAddress(i)),
                              .speedMbps = plan.nic(i).speedMbps});
  }
  // Ranks of one host that cannot share memory, where the plan has no NIC for them.
  if (config.devices.empty())
    config.devices.push_back({.interface = {}, .address = std::string(plan.hostAddress(header.hostIndex))});
  return config;
}

VerbsConfig verbsOf(const PlanView& plan, const Token& token) {
  const uint32_t host = plan.header().hostIndex;
  VerbsConfig config{
      .ports = {}, .address = std::string(plan.hostAddress(host)), .token = token, .tuning = verbsTuningOfVariables()};
  for (uint32_t i = 0; i < plan.nicCount(); i++) {
    config.ports.push_back({.card = std::string(plan.nicName(i)),
                            .port = uint8_t(plan.nic(i).port),
                            .gid = std::string(plan.nicAddress(i)),
                            .speedMbps = plan.nic(i).speedMbps});
  }
  return config;
}

}  // namespace

plan::Transport transportOf(const Network& network) {
  if (network.name() == kSocketNetwork) return plan::Transport::socket;
  return network.name() == kVerbsNetwork ? plan::Transport::ib : plan::Transport::plugin;
}

Status chooseNetwork(const PlanView& plan, const Token& token, std::unique_ptr<Network>& out) {
  const plugin::Wish wish = plugin::wishOfVariables();
  plugin::Selection selection;
  NCCLRUN_TRY(plugin::select(wish, numberOf(token), selection));
  if (selection.network != nullptr) {
    out = std::move(selection.network);
    return {};
  }
  const bool isVerbs = plan.networkName() == kVerbsNetwork;
  if (!wish.network.empty() && strcasecmp(wish.network.c_str(), isVerbs ? kVerbsNetwork : kSocketNetwork) != 0)
    return unknownNetwork(wish.network, selection);
  if (isVerbs) {
    std::unique_ptr<VerbsNetwork> verbs;
    NCCLRUN_TRY(VerbsNetwork::make(verbsOf(plan, token), verbs));
    out = std::move(verbs);
    return {};
  }
  std::unique_ptr<SocketNetwork> sockets;
  NCCLRUN_TRY(SocketNetwork::make(socketsOf(plan, token), sockets));
  out = std::move(sockets);
  return {};
}

}  // namespace ncclrun::net
