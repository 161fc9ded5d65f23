#include "communicator/measure_network.h"

#include <array>
#include <string>
#include <vector>

#include "agent/unique_id.h"
#include "communicator/network_session.h"
#include "datapath/nic_list.h"
#include "net/measure/network_measurement.h"
#include "plan/plan_view.h"

namespace ncclrun {
namespace {

Status describeHosts(std::span<const std::byte> bytes, const PlanView& plan, const ncclrunNetListener& listener) {
  const uint32_t hosts = plan.header().hosts;
  listener.network(listener.argument, std::string(plan.networkName()).c_str(), hosts);
  for (uint32_t host = 0; host < hosts; host++) {
    std::vector<ncclrunNic> nics(plan.nicCount(host));
    size_t count = 0;
    NCCLRUN_TRY(listNics(bytes, host, nics, count));
    listener.host(listener.argument, host, std::string(plan.hostName(host)).c_str(), nics.data(), nics.size());
  }
  return {};
}

}  // namespace

Status measureNetwork(std::span<const uint64_t> sizes, bool allNics, const ncclrunNetListener& listener) {
  ncclUniqueId id;
  int size = 0, rank = 0;
  NCCLRUN_TRY(readJob(id, size, rank));
  NetworkSession session(id, uint32_t(size), uint32_t(rank));
  NCCLRUN_TRY(session.join());
  PlanView plan;
  NCCLRUN_TRY(plan.open(session.plan()));
  NCCLRUN_TRY(describeHosts(session.plan(), plan, listener));
  return net::measureNetwork(
      {.plan = plan,
       .rank = uint32_t(rank),
       .sizes = sizes,
       .allNics = allNics,
       .gather = [&session](std::span<const std::byte> own,
                            std::vector<std::byte>& all) { return session.gather(own, all); },
       .report = [&listener](const ncclrunNetPair& pair) { listener.pair(listener.argument, &pair); }});
}

}  // namespace ncclrun
