// The binary interface of NCCL's network plugins (ncclNet), versions 6 to 12: what a plugin exports under the name
// ncclNetPlugin_vN, and the structures that its calls exchange. Every size and offset is checked at the end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ncclrun::net::plugin::abi {

inline constexpr int kOldest = 6;
inline constexpr int kNewest = 12;

// Results are those of ncclResult_t. Memory types are those of net.h (MemoryType).
using Result = int;

enum LogLevel : int { kLogNone, kLogVersion, kLogWarn, kLogInfo, kLogAbort, kLogTrace };
using Log = void (*)(int level, unsigned long subsystems, const char* file, int line, const char* format, ...);

// what: 0 start, 1 stop, 2 update, 3 update and stop.
using Profiler = Result (*)(void** event, int what, void* parent, int64_t pluginId, void* descriptor);

// Bits of ptrSupport.
inline constexpr int kHostMemory = 1;
inline constexpr int kDeviceMemory = 2;
inline constexpr int kDmaBuf = 4;

struct Config {
  int trafficClass;
};
inline constexpr int kNoTrafficClass = -1;

// Set by connect() and accept() of a plugin that wants GPU kernels to drive it.
struct DeviceHandle {
  int type;
  int version;
  void* handle;
  size_t size;
  int needsProxyProgress;
};
inline constexpr int kDrivenByHost = 0;

struct PropertiesV6 {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
};

struct PropertiesV7 {
  PropertiesV6 v6;
  int netDeviceType;
  int netDeviceVersion;
};

struct PropertiesV8 {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
};

// The adapters that a virtual device consists of.
template <int kMembers>
struct VirtualDevice {
  int count;
  int devices[kMembers];
};

template <int kMembers>
struct PropertiesWithMembers {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
  VirtualDevice<kMembers> members;
  size_t maxP2pBytes;
  size_t maxCollBytes;
};

using PropertiesV9 = PropertiesWithMembers<4>;

struct PropertiesV11 {
  PropertiesV9 v9;
  int maxMultiRequestSize;
};

struct PropertiesV12 {
  PropertiesWithMembers<8> v9;
  int maxMultiRequestSize;
  int16_t railId;
  int16_t planeId;
};

// clang-format off
template <int V>
using Properties =
    std::conditional_t<V == 6, PropertiesV6,
    std::conditional_t<V == 7, PropertiesV7,
    std::conditional_t<V == 8, PropertiesV8,
    std::conditional_t<V <= 10, PropertiesV9,
    std::conditional_t<V == 11, PropertiesV11, PropertiesV12>>>>>;
// clang-format on

// What differs between the calls of the versions.
template <int V>
using MessageSize = std::conditional_t<(V >= 9), size_t, int>;
template <int V>
using RegionSize = std::conditional_t<(V >= 8), size_t, int>;

template <int V>
struct Signatures {
  static auto init() {
    if constexpr (V <= 9) return static_cast<Result (*)(Log)>(nullptr);
    if constexpr (V == 10) return static_cast<Result (*)(Log, Profiler)>(nullptr);
    if constexpr (V >= 11) return static_cast<Result (*)(void**, uint64_t, Config*, Log, Profiler)>(nullptr);
  }
  static auto listen() {
    if constexpr (V <= 10) return static_cast<Result (*)(int, void*, void**)>(nullptr);
    if constexpr (V >= 11) return static_cast<Result (*)(void*, int, void*, void**)>(nullptr);
  }
  static auto connect() {
    if constexpr (V == 6) return static_cast<Result (*)(int, void*, void**)>(nullptr);
    if constexpr (V >= 7 && V <= 9) return static_cast<Result (*)(int, void*, void**, DeviceHandle**)>(nullptr);
    if constexpr (V == 10) return static_cast<Result (*)(int, Config*, void*, void**, DeviceHandle**)>(nullptr);
    if constexpr (V >= 11) return static_cast<Result (*)(void*, int, void*, void**, DeviceHandle**)>(nullptr);
  }
  static auto accept() {
    if constexpr (V == 6) return static_cast<Result (*)(void*, void**)>(nullptr);
    if constexpr (V >= 7) return static_cast<Result (*)(void*, void**, DeviceHandle**)>(nullptr);
  }
  using Size = MessageSize<V>;
  static auto isend() {
    if constexpr (V <= 9) return static_cast<Result (*)(void*, void*, Size, int, void*, void**)>(nullptr);
    if constexpr (V >= 10) return static_cast<Result (*)(void*, void*, Size, int, void*, void*, void**)>(nullptr);
  }
  static auto irecv() {
    if constexpr (V <= 9) return static_cast<Result (*)(void*, int, void**, Size*, int*, void**, void**)>(nullptr);
    if constexpr (V >= 10)
      return static_cast<Result (*)(void*, int, void**, Size*, int*, void**, void**, void**)>(nullptr);
  }
};

// Members that not every version has. Those of a version lie behind those of the versions before it.
template <int V>
struct Tail {
  Result (*getDeviceMr)(void* comm, void* registration, void** deviceRegistration);
  Result (*irecvConsumed)(void* comm, int count, void* request);
  Result (*makeVDevice)(int* device, VirtualDevice<(V >= 12 ? 8 : 4)>* members);
  Result (*finalize)(void* context);
  Result (*setNetAttr)(void* context, void* attributes);
};
template <int V>
requires(V == 9 || V == 10) struct Tail<V> {
  Result (*getDeviceMr)(void* comm, void* registration, void** deviceRegistration);
  Result (*irecvConsumed)(void* comm, int count, void* request);
  Result (*makeVDevice)(int* device, VirtualDevice<4>* members);
};
template <int V>
requires(V == 7 || V == 8) struct Tail<V> {
  Result (*getDeviceMr)(void* comm, void* registration, void** deviceRegistration);
  Result (*irecvConsumed)(void* comm, int count, void* request);
};
template <>
struct Tail<6> {};

// A plugin may replace members of its table during init(): calls go through the table itself.
template <int V>
struct Table {
  const char* name;
  decltype(Signatures<V>::init()) init;
  Result (*devices)(int* count);
  Result (*getProperties)(int device, Properties<V>* properties);
  decltype(Signatures<V>::listen()) listen;
  decltype(Signatures<V>::connect()) connect;
  decltype(Signatures<V>::accept()) accept;
  Result (*regMr)(void* comm, void* data, RegionSize<V> bytes, int type, void** registration);
  Result (*regMrDmaBuf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int descriptor,
                        void** registration);
  Result (*deregMr)(void* comm, void* registration);
  decltype(Signatures<V>::isend()) isend;
  decltype(Signatures<V>::irecv()) irecv;
  Result (*iflush)(void* comm, int count, void** data, int* sizes, void** registrations, void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*closeSend)(void* comm);
  Result (*closeRecv)(void* comm);
  Result (*closeListen)(void* comm);
  [[no_unique_address]] Tail<V> tail;
};

static_assert(sizeof(void*) == 8 && sizeof(int) == 4 && sizeof(unsigned long) == 8);
static_assert(sizeof(Table<6>) == 136 && sizeof(Table<7>) == 152 && sizeof(Table<8>) == 152);
static_assert(sizeof(Table<9>) == 160 && sizeof(Table<10>) == 160);
static_assert(sizeof(Table<11>) == 176 && sizeof(Table<12>) == 176);

static_assert(sizeof(Properties<6>) == 48 && sizeof(Properties<7>) == 56 && sizeof(Properties<8>) == 64);
static_assert(sizeof(Properties<9>) == 104 && sizeof(Properties<10>) == 104);
static_assert(sizeof(Properties<11>) == 112 && sizeof(Properties<12>) == 128);
static_assert(sizeof(DeviceHandle) == 32 && sizeof(Config) == 4);

static_assert(offsetof(PropertiesV6, ptrSupport) == 24 && offsetof(PropertiesV6, speed) == 28);
static_assert(offsetof(PropertiesV6, latency) == 36 && offsetof(PropertiesV6, maxRecvs) == 44);
static_assert(offsetof(PropertiesV7, netDeviceType) == 48);
static_assert(offsetof(PropertiesV8, regIsGlobal) == 28 && offsetof(PropertiesV8, speed) == 32);
static_assert(offsetof(PropertiesV8, maxRecvs) == 48 && offsetof(PropertiesV8, netDeviceType) == 52);
static_assert(offsetof(PropertiesV9, regIsGlobal) == 28 && offsetof(PropertiesV9, forceFlush) == 32);
static_assert(offsetof(PropertiesV9, speed) == 36 && offsetof(PropertiesV9, maxRecvs) == 52);
static_assert(offsetof(PropertiesV9, netDeviceType) == 56 && offsetof(PropertiesV9, members) == 64);
static_assert(offsetof(PropertiesV9, maxP2pBytes) == 88 && offsetof(PropertiesV9, maxCollBytes) == 96);
static_assert(offsetof(PropertiesV11, maxMultiRequestSize) == 104);
static_assert(offsetof(PropertiesV12, v9.maxP2pBytes) == 104 && offsetof(PropertiesV12, v9.maxCollBytes) == 112);
static_assert(offsetof(PropertiesV12, maxMultiRequestSize) == 120 && offsetof(PropertiesV12, railId) == 124);

// Every member of a table has the size of a pointer, so a table is checked by the index of its members.
template <int V>
constexpr bool hasOrderOfMembers() {
  using T = Table<V>;
  constexpr size_t kWord = sizeof(void*);
  static_assert(offsetof(T, init) == 1 * kWord && offsetof(T, getProperties) == 3 * kWord);
  static_assert(offsetof(T, listen) == 4 * kWord && offsetof(T, connect) == 5 * kWord);
  static_assert(offsetof(T, accept) == 6 * kWord && offsetof(T, regMr) == 7 * kWord);
  static_assert(offsetof(T, regMrDmaBuf) == 8 * kWord && offsetof(T, deregMr) == 9 * kWord);
  static_assert(offsetof(T, isend) == 10 * kWord && offsetof(T, irecv) == 11 * kWord);
  static_assert(offsetof(T, iflush) == 12 * kWord && offsetof(T, test) == 13 * kWord);
  static_assert(offsetof(T, closeSend) == 14 * kWord && offsetof(T, closeListen) == 16 * kWord);
  if constexpr (V >= 7) static_assert(offsetof(T, tail.getDeviceMr) == 17 * kWord);
  if constexpr (V >= 7) static_assert(offsetof(T, tail.irecvConsumed) == 18 * kWord);
  if constexpr (V >= 9) static_assert(offsetof(T, tail.makeVDevice) == 19 * kWord);
  if constexpr (V >= 11) static_assert(offsetof(T, tail.finalize) == 20 * kWord);
  if constexpr (V >= 11) static_assert(offsetof(T, tail.setNetAttr) == 21 * kWord);
  return true;
}
static_assert(hasOrderOfMembers<6>() && hasOrderOfMembers<7>() && hasOrderOfMembers<8>() && hasOrderOfMembers<9>());
static_assert(hasOrderOfMembers<10>() && hasOrderOfMembers<11>() && hasOrderOfMembers<12>());

}  // namespace ncclrun::net::plugin::abi
