#include "net/plugin/device.h"

#include <algorithm>
#include <climits>
#include <cmath>

#include "base/error.h"

namespace ncclrun::net::plugin {

Device deviceOf(const NewestProperties& properties, int index, bool hasDmaBuf) {
  const auto& p = properties.v9;
  Device device;
  device.name = p.name == nullptr || *p.name == '\0' ? formatSentence("device%d", index) : p.name;
  if (p.pciPath != nullptr) device.pciPath = p.pciPath;
  device.guid = p.guid;
  device.port = uint32_t(std::max(p.port, 0));
  if (p.speed > 0) device.speedMbps = uint32_t(p.speed);
  if (std::isfinite(p.latency) && p.latency > 0) device.latencyUs = p.latency;
  if (p.maxComms > 0) device.maxConnections = uint32_t(p.maxComms);
  device.maxReceives = uint32_t(std::clamp(p.maxRecvs, 1, kMaxReceives));
  // test() reports sizes as int, whatever the device can send.
  if (p.maxP2pBytes > 0) device.maxMessageBytes = std::min<uint64_t>(p.maxP2pBytes, INT_MAX);
  if (p.maxCollBytes > 0) device.maxCollectiveBytes = std::min<uint64_t>(p.maxCollBytes, INT_MAX);
  device.deviceMemory = (p.ptrSupport & (abi::kDeviceMemory | abi::kDmaBuf)) != 0;
  device.dmaBuf = (p.ptrSupport & abi::kDmaBuf) != 0 && hasDmaBuf;
  device.globalRegistrations = p.regIsGlobal != 0;
  device.forceFlush = p.forceFlush != 0;
  return device;
}

}  // namespace ncclrun::net::plugin
