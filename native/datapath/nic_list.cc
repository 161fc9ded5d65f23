#include "datapath/nic_list.h"

#include <string_view>

#include "plan/plan_view.h"

namespace ncclrun {
namespace {

template <size_t kBytes>
void copyText(std::string_view text, char (&out)[kBytes]) {
  out[text.copy(out, kBytes - 1)] = '\0';
}

}  // namespace

std::string describeNetwork(std::span<const std::byte> plan) {
  PlanView view;
  if (!view.open(plan).ok() || view.networkName().empty()) return {};
  std::string text = "network " + std::string(view.networkName()) + ", NICs:";
  for (uint32_t index = 0; index < view.nicCount(); index++) {
    const auto nic = view.nic(index);
    text += (index == 0 ? " " : ", ") + std::string(view.nicName(index));
    if (nic.port != 0) text += " port " + std::to_string(nic.port);
    text += " (" + std::string(view.nicAddress(index));
    if (nic.speedMbps != 0) text += formatSentence(", %g Gb/s", nic.speedMbps / 1000.0);
    text += ")";
  }
  return text;
}

Status listNics(std::span<const std::byte> plan, uint32_t host, std::span<ncclrunNic> out, size_t& count) {
  PlanView view;
  NCCLRUN_TRY(view.open(plan));
  if (host >= view.header().hosts) return {ncclInvalidArgument, "the communicator has no host " + std::to_string(host)};
  count = view.nicCount(host);
  for (uint32_t index = 0; index < count && index < out.size(); index++) {
    const auto nic = view.nic(host, index);
    ncclrunNic& made = out[index];
    copyText(view.nicName(host, index), made.name);
    copyText(view.nicAddress(host, index), made.address);
    made.speedMbps = nic.speedMbps;
    made.port = nic.port;
    made.gpuDirect = nic.gpuDirect;
  }
  return {};
}

}  // namespace ncclrun
