#include "net/plugin/properties.h"

#include <algorithm>

namespace ncclrun::net::plugin {
namespace {

constexpr size_t kMessageBytesBefore9 = size_t(1) << 30;
constexpr size_t kCollectiveBytesBefore9 = size_t(1) << 29;

// What every version has.
template <typename Properties>
void copyCommon(const Properties& from, NewestProperties& out) {
  out.v9.name = from.name;
  out.v9.pciPath = from.pciPath;
  out.v9.guid = from.guid;
  out.v9.ptrSupport = from.ptrSupport;
  out.v9.speed = from.speed;
  out.v9.port = from.port;
  out.v9.latency = from.latency;
  out.v9.maxComms = from.maxComms;
  out.v9.maxRecvs = from.maxRecvs;
}

template <typename Properties>
void copyDriver(const Properties& from, NewestProperties& out) {
  out.v9.netDeviceType = from.netDeviceType;
  out.v9.netDeviceVersion = from.netDeviceVersion;
}

template <int kMembers>
void copyOfVersion9(const abi::PropertiesWithMembers<kMembers>& from, NewestProperties& out) {
  copyCommon(from, out);
  copyDriver(from, out);
  out.v9.regIsGlobal = from.regIsGlobal;
  out.v9.forceFlush = from.forceFlush;
  out.v9.members.count = std::clamp(from.members.count, 0, kMembers);
  std::copy_n(from.members.devices, out.v9.members.count, out.v9.members.devices);
  out.v9.maxP2pBytes = from.maxP2pBytes;
  out.v9.maxCollBytes = from.maxCollBytes;
}

}  // namespace

void copyProperties(const abi::PropertiesV6& from, NewestProperties& out) { copyCommon(from, out); }
void copyProperties(const abi::PropertiesV7& from, NewestProperties& out) {
  copyCommon(from.v6, out);
  copyDriver(from, out);
}
void copyProperties(const abi::PropertiesV8& from, NewestProperties& out) {
  copyCommon(from, out);
  copyDriver(from, out);
  out.v9.regIsGlobal = from.regIsGlobal;
}
void copyProperties(const abi::PropertiesV9& from, NewestProperties& out) { copyOfVersion9(from, out); }
void copyProperties(const abi::PropertiesV11& from, NewestProperties& out) {
  copyOfVersion9(from.v9, out);
  out.maxMultiRequestSize = from.maxMultiRequestSize;
}
void copyProperties(const abi::PropertiesV12& from, NewestProperties& out) { out = from; }

NewestProperties defaultProperties(int device) {
  NewestProperties made{};
  made.v9.members.count = 1;
  made.v9.members.devices[0] = device;
  made.v9.maxP2pBytes = kMessageBytesBefore9;
  made.v9.maxCollBytes = kCollectiveBytesBefore9;
  made.maxMultiRequestSize = 1;
  made.railId = -1;
  made.planeId = -1;
  return made;
}

}  // namespace ncclrun::net::plugin
