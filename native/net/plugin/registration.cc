#include "net/plugin/registration.h"

#include "nccl.h"

namespace ncclrun::net::plugin {

Status registerWith(LoadedPlugin& plugin, const Device& device, void* comm, const Region& region, Registration& out) {
  out = {};
  if (region.type == MemoryType::device && !device.deviceMemory)
    return {ncclInvalidUsage,
            formatSentence("%s: device %s does not register GPU memory", plugin.label().c_str(), device.name.c_str())};
  const bool byDmaBuf = region.dmaBufDescriptor >= 0 && device.dmaBuf;
  const int code = byDmaBuf ? plugin.table().regMrDmaBuf(comm, region.address, region.bytes, int(region.type),
                                                         region.dmaBufOffset, region.dmaBufDescriptor, &out.opaque)
                            : plugin.table().regMr(comm, region.address, region.bytes, int(region.type), &out.opaque);
  if (code == ncclSuccess) return {};
  out = {};
  Status status = plugin.failure(byDmaBuf ? "regMrDmaBuf" : "regMr", code);
  status.sentence +=
      formatSentence(" (%zu bytes of %s memory)", region.bytes, region.type == MemoryType::device ? "GPU" : "host");
  return status;
}

Status deregisterWith(LoadedPlugin& plugin, void* comm, Registration registration) {
  const int code = plugin.table().deregMr(comm, registration.opaque);
  return code == ncclSuccess ? Status() : plugin.failure("deregMr", code);
}

}  // namespace ncclrun::net::plugin
