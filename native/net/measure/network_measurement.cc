#include "net/measure/network_measurement.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "net/measure/pair_measurement.h"
#include "net/proxy/choose_network.h"

namespace ncclrun::net {
namespace {

// What a rank says of the pair that is measured, in every gather.
struct Said {
  Handle handle;
  double latency, latency99;  // microseconds
  double gigabytes[NCCLRUN_NET_SIZES];
  int64_t retransmits;
  uint64_t sentBytes;
  char error[sizeof ncclrunNetPair::error / 2];
};

// A NIC of a host.
struct End {
  uint32_t host, nic;
};

class Measurement {
 public:
  Measurement(const MeasurementSetup& setup, Network& network) : setup_(setup), network_(network) {}

  Status measurePair(const End& one, const End& other) {
    const std::optional<bool> leads = roleIn(one, other);
    const uint32_t device = leads.value_or(true) ? one.nic : other.nic;
    own_ = {};
    PairMeasurement pair(network_, device);
    if (leads.has_value()) note(pair.listen(own_.handle));
    NCCLRUN_TRY(exchange());
    if (isWell(one, other)) {
      if (leads.has_value()) note(pair.connect(of(*leads ? other : one).handle));
      NCCLRUN_TRY(exchange());
    }
    if (isWell(one, other)) {
      if (leads.has_value()) note(measure(pair, *leads));
      NCCLRUN_TRY(exchange());
    }
    report(one, other);
    report(other, one);
    return {};
  }

 private:
  // Whether this rank is at the first end, or at the second one.
  std::optional<bool> roleIn(const End& one, const End& other) const {
    const uint32_t host = setup_.plan.header().hostIndex;
    if (setup_.plan.member(host, 0) != setup_.rank || (host != one.host && host != other.host)) return {};
    return host == one.host;
  }

  Status measure(PairMeasurement& pair, bool leads) {
    Latency latency;
    NCCLRUN_TRY(pair.latency(leads, latency));
    own_.latency = latency.median / 1e3;
    own_.latency99 = latency.percentile99 / 1e3;
    for (const bool leaderSends : {true, false}) {
      for (size_t i = 0; i < setup_.sizes.size(); i++) {
        NCCLRUN_TRY(leads == leaderSends ? pair.send(setup_.sizes[i])
                                         : pair.receive(setup_.sizes[i], own_.gigabytes[i]));
      }
    }
    const std::optional<Traffic> traffic = pair.traffic();
    own_.retransmits = traffic.has_value() ? int64_t(traffic->retransmits) : -1;
    own_.sentBytes = traffic.has_value() ? traffic->bytes : 0;
    return {};
  }

  void note(const Status& status) {
    if (!status.ok()) own_.error[status.sentence.copy(own_.error, sizeof own_.error - 1)] = '\0';
  }

  Status exchange() {
    const auto* first = reinterpret_cast<const std::byte*>(&own_);
    NCCLRUN_TRY(setup_.gather({first, sizeof own_}, all_));
    if (all_.size() == size_t(setup_.plan.header().ranks) * sizeof(Said)) return {};
    return {ncclInternalError, "the ranks have different versions of the engine"};
  }

  Said of(const End& end) const {
    Said said;
    std::memcpy(&said, all_.data() + size_t(setup_.plan.member(end.host, 0)) * sizeof said, sizeof said);
    said.error[sizeof said.error - 1] = '\0';
    return said;
  }

  bool isWell(const End& one, const End& other) const { return of(one).error[0] == '\0' && of(other).error[0] == '\0'; }

  // "eth0 (10.0.0.1) of a"
  std::string describe(const End& end) const {
    const PlanView& plan = setup_.plan;
    return std::string(plan.nicName(end.host, end.nic)) + " (" + std::string(plan.nicAddress(end.host, end.nic)) +
           ") of " + std::string(plan.hostName(end.host));
  }

  void report(const End& from, const End& to) const {
    const Said sender = of(from), receiver = of(to);
    ncclrunNetPair pair = {};
    pair.from = from.host;
    pair.fromNic = from.nic;
    pair.to = to.host;
    pair.toNic = to.nic;
    pair.latencyUs = std::max(sender.latency, receiver.latency);  // only the leader has measured it
    pair.latency99Us = std::max(sender.latency99, receiver.latency99);
    std::copy(std::begin(receiver.gigabytes), std::end(receiver.gigabytes), std::begin(pair.gigabytes));
    pair.retransmits = sender.retransmits;
    pair.sentBytes = sender.sentBytes;
    std::string error;
    if (sender.error[0] != '\0') error = describe(from) + ": " + sender.error;
    if (receiver.error[0] != '\0') error += (error.empty() ? "" : "; ") + describe(to) + ": " + receiver.error;
    error.copy(pair.error, sizeof pair.error - 1);
    setup_.report(pair);
  }

  const MeasurementSetup& setup_;
  Network& network_;
  Said own_ = {};
  std::vector<std::byte> all_;
};

}  // namespace

Status measureNetwork(const MeasurementSetup& setup) {
  const auto& header = setup.plan.header();
  Token token;
  static_assert(sizeof token == sizeof header.token);
  std::memcpy(token.data(), header.token, sizeof token);
  std::unique_ptr<Network> network;
  NCCLRUN_TRY(chooseNetwork(setup.plan, token, network));
  // Of a plugin, another number than the plan's.
  const uint32_t nics = std::min(setup.plan.nicCount(), uint32_t(network->devices().size()));
  Measurement measurement(setup, *network);
  for (uint32_t one = 0; one < header.hosts; one++) {
    for (uint32_t other = one + 1; other < header.hosts; other++) {
      for (uint32_t nic = 0; nic < nics; nic++) {
        for (uint32_t far = 0; far < nics; far++) {
          if (far != nic && !setup.allNics) continue;
          NCCLRUN_TRY(measurement.measurePair({one, nic}, {other, far}));
        }
      }
    }
  }
  return {};
}

}  // namespace ncclrun::net
