// NVIDIA's management library, opened at run time: names, types and numbers as its reference has them (NVML API
// Reference, nvml.h), as far as we use them.
#pragma once
#include <string>

namespace ncclrun::nvml {

using Result = int;
using Device = struct nvmlDevice_st*;

inline constexpr Result kSuccess = 0;
inline constexpr int kFeatureEnabled = 1;
inline constexpr unsigned kMaxLinks = 18;
inline constexpr int kCapabilityPeers = 0;  // of NVLinks: they can be used between peers
inline constexpr unsigned kC2cLinkCount = 170;
inline constexpr unsigned kC2cLinkState = 171;      // scope: the link's number
inline constexpr unsigned kC2cLinkBandwidth = 172;  // MB/s

struct PciInfo {
  char shortBusId[16];  // cut where the domain has more than four digits
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned deviceId;
  unsigned subsystemId;
  char busId[32];
};

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency;
  int type;
  Result result;
  union {
    double number;
    unsigned whole;
    unsigned long long large;
  } value;
};

// F(member, symbol, parameters): every function of the library that we call.
#define NCCLRUN_NVML_FUNCTIONS(F)                                                                      \
  F(init, "nvmlInit_v2", ())                                                                           \
  F(shutdown, "nvmlShutdown", ())                                                                      \
  F(deviceGetCount, "nvmlDeviceGetCount_v2", (unsigned*))                                              \
  F(deviceGetHandleByIndex, "nvmlDeviceGetHandleByIndex_v2", (unsigned, Device*))                      \
  F(deviceGetPciInfo, "nvmlDeviceGetPciInfo_v3", (Device, PciInfo*))                                   \
  F(deviceGetIndex, "nvmlDeviceGetIndex", (Device, unsigned*))                                         \
  F(deviceGetCudaComputeCapability, "nvmlDeviceGetCudaComputeCapability", (Device, int*, int*))        \
  F(deviceGetNvLinkCapability, "nvmlDeviceGetNvLinkCapability", (Device, unsigned, int, unsigned*))    \
  F(deviceGetNvLinkState, "nvmlDeviceGetNvLinkState", (Device, unsigned, int*))                        \
  F(deviceGetNvLinkRemotePciInfo, "nvmlDeviceGetNvLinkRemotePciInfo_v2", (Device, unsigned, PciInfo*)) \
  F(deviceGetFieldValues, "nvmlDeviceGetFieldValues", (Device, int, FieldValue*))

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct Process {
  unsigned pid;
  unsigned long long usedMemory;  // bytes
  unsigned gpuInstance;
  unsigned computeInstance;
};
inline constexpr unsigned long long kUnknownMemory = ~0ULL;

using EventSet = struct nvmlEventSet_st*;
inline constexpr Result kTimeout = 10;
inline constexpr unsigned long long kEventXid = 8;  // nvmlEventTypeXidCriticalError

inline constexpr int kClockSm = 1;
inline constexpr int kEccCorrected = 0, kEccUncorrected = 1;
inline constexpr int kEccVolatile = 0;  // since the driver was loaded

struct EventData {
  Device device;
  unsigned long long type;
  unsigned long long data;  // of kEventXid: the Xid
  unsigned gpuInstance;
  unsigned computeInstance;
};

// The same, of those that not every driver has: null there.
#define NCCLRUN_NVML_NEWER_FUNCTIONS(F)                                                                   \
  F(deviceGetMemoryInfo, "nvmlDeviceGetMemoryInfo", (Device, Memory*))                                    \
  F(deviceGetProcesses, "nvmlDeviceGetComputeRunningProcesses_v3", (Device, unsigned*, Process*))         \
  F(deviceGetClockInfo, "nvmlDeviceGetClockInfo", (Device, int, unsigned*))                               \
  F(deviceGetMaxClockInfo, "nvmlDeviceGetMaxClockInfo", (Device, int, unsigned*))                         \
  F(deviceGetThrottleReasons, "nvmlDeviceGetCurrentClocksThrottleReasons", (Device, unsigned long long*)) \
  F(deviceGetTotalEccErrors, "nvmlDeviceGetTotalEccErrors", (Device, int, int, unsigned long long*))      \
  F(deviceGetPcieWidth, "nvmlDeviceGetCurrPcieLinkWidth", (Device, unsigned*))                            \
  F(deviceGetMaxPcieWidth, "nvmlDeviceGetMaxPcieLinkWidth", (Device, unsigned*))                          \
  F(eventSetCreate, "nvmlEventSetCreate", (EventSet*))                                                    \
  F(eventSetFree, "nvmlEventSetFree", (EventSet))                                                         \
  F(deviceRegisterEvents, "nvmlDeviceRegisterEvents", (Device, unsigned long long, EventSet))             \
  F(eventSetWait, "nvmlEventSetWait_v2", (EventSet, EventData*, unsigned))

struct Library {
#define NCCLRUN_NVML_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  NCCLRUN_NVML_FUNCTIONS(NCCLRUN_NVML_MEMBER)
  NCCLRUN_NVML_NEWER_FUNCTIONS(NCCLRUN_NVML_MEMBER)
#undef NCCLRUN_NVML_MEMBER
  const char* (*errorString)(Result) = nullptr;
};

// Opens and starts it (libnvidia-ml.so.1, or what NCCLRUN_LIBNVIDIA_ML names), to be shut down by the caller. False:
// `why` says in a sentence without its end what is missing.
bool open(Library& library, std::string& why);

}  // namespace ncclrun::nvml
