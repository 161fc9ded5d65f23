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
