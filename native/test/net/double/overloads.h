// The calls of all versions, as overloads: a table's member chooses by its type the one that its version has. They lead
// to calls.h.
#pragma once
#include <algorithm>

#include "net/double/behaviour.h"
#include "net/double/calls.h"

namespace ncclrun::test::doubled::overloads {

using namespace ncclrun::net::plugin::abi;

// Versions before 11 have one context for the process.
inline void* onlyContext = nullptr;

inline int initOnce(Log log, Profiler profiler) {
  if (onlyContext != nullptr) doubled::broken("init of a version before 11 is called twice");
  return doubled::begin(&onlyContext, 0, log, profiler);
}
inline int init(Log log) { return initOnce(log, nullptr); }
inline int init(Log log, Profiler profiler) {
  if (profiler == nullptr) doubled::broken("init without a profiler");
  return initOnce(log, profiler);
}
inline int init(void** context, uint64_t communicatorId, Config* config, Log log, Profiler profiler) {
  if (profiler == nullptr || config == nullptr) doubled::broken("init without a profiler or a configuration");
  return doubled::begin(context, communicatorId, log, profiler);
}

template <typename Properties>
inline void fillCommon(const netProperties& from, Properties& to) {
  to.name = from.name;
  to.pciPath = from.pciPath;
  to.guid = from.guid;
  to.ptrSupport = from.ptrSupport;
  to.speed = from.speed;
  to.port = from.port;
  to.latency = from.latency;
  to.maxComms = from.maxComms;
  to.maxRecvs = from.maxRecvs;
}
inline void fill(const netProperties& from, PropertiesV6& to) { fillCommon(from, to); }
inline void fill(const netProperties& from, PropertiesV7& to) {
  fillCommon(from, to.v6);
  to.netDeviceType = from.netDeviceType;
}
inline void fill(const netProperties& from, PropertiesV8& to) {
  fillCommon(from, to);
  to.netDeviceType = from.netDeviceType;
  to.regIsGlobal = from.regIsGlobal;
}
// Leaves forceFlush as it is where it is not set, as foreign plugins do.
template <int kMembers>
inline void fill(const netProperties& from, PropertiesWithMembers<kMembers>& to) {
  fillCommon(from, to);
  if (from.forceFlush != 0) to.forceFlush = from.forceFlush;
  to.netDeviceType = from.netDeviceType;
  to.regIsGlobal = from.regIsGlobal;
  to.maxP2pBytes = from.maxP2pBytes;
  to.maxCollBytes = from.maxCollBytes;
}
inline void fill(const netProperties& from, PropertiesV11& to) { fill(from, to.v9); }
inline void fill(const netProperties& from, PropertiesV12& to) { fill(from, to.v9); }

template <typename Properties>
inline int getProperties(int device, Properties* out) {
  netProperties properties{};
  const int result = doubled::properties(device, &properties);
  fill(properties, *out);
  return result;
}

inline int listen(int device, void* handle, void** listener) {
  return doubled::listen(onlyContext, device, handle, listener);
}
inline int listen(void* context, int device, void* handle, void** listener) {
  return doubled::listen(context, device, handle, listener);
}

inline int connect(int device, void* handle, void** sender) {
  return doubled::connect(onlyContext, device, handle, sender, nullptr);
}
inline int connect(int device, void* handle, void** sender, DeviceHandle** driver) {
  return doubled::connect(onlyContext, device, handle, sender, driver);
}
inline int connect(int device, Config* config, void* handle, void** sender, DeviceHandle** driver) {
  if (config == nullptr || config->trafficClass != kNoTrafficClass) doubled::broken("connect without a configuration");
  return doubled::connect(onlyContext, device, handle, sender, driver);
}
inline int connect(void* context, int device, void* handle, void** sender, DeviceHandle** driver) {
  return doubled::connect(context, device, handle, sender, driver);
}

inline int accept(void* listener, void** receiver) { return doubled::accept(listener, receiver, nullptr); }
inline int accept(void* listener, void** receiver, DeviceHandle** driver) {
  return doubled::accept(listener, receiver, driver);
}

inline int regMr(void* comm, void* data, int bytes, int type, void** registration) {
  return doubled::regMr(comm, data, size_t(bytes), type, registration);
}
inline int regMr(void* comm, void* data, size_t bytes, int type, void** registration) {
  return doubled::regMr(comm, data, bytes, type, registration);
}

inline int isend(void* comm, void* data, int bytes, int tag, void* registration, void** request) {
  return doubled::isend(comm, data, size_t(bytes), tag, registration, request);
}
inline int isend(void* comm, void* data, size_t bytes, int tag, void* registration, void** request) {
  return doubled::isend(comm, data, bytes, tag, registration, request);
}
inline int isend(void* comm, void* data, size_t bytes, int tag, void* registration, void*, void** request) {
  return doubled::isend(comm, data, bytes, tag, registration, request);
}

inline int irecv(void* comm, int count, void** data, int* sizes, int* tags, void** registrations, void** request) {
  size_t bytes[8] = {};
  std::copy_n(sizes, std::min(count, 8), bytes);
  return doubled::irecv(comm, count, data, bytes, tags, registrations, request);
}
inline int irecv(void* comm, int count, void** data, size_t* sizes, int* tags, void** registrations, void** request) {
  return doubled::irecv(comm, count, data, sizes, tags, registrations, request);
}
inline int irecv(void* comm, int count, void** data, size_t* sizes, int* tags, void** registrations, void** profilers,
                 void** request) {
  if (profilers == nullptr) doubled::broken("irecv without profilers");
  return doubled::irecv(comm, count, data, sizes, tags, registrations, request);
}

}  // namespace ncclrun::test::doubled::overloads
