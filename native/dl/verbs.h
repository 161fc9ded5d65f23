// libibverbs, opened at run time: names, types and numbers as rdma-core has them (infiniband/verbs.h), as far as we use
// them.
#pragma once
#include <cstdint>
#include <string>

namespace ncclrun::verbs {

using Device = struct ibv_device*;
using Context = struct ibv_context*;

inline constexpr int kPortActive = 4;
inline constexpr uint8_t kLinkInfiniBand = 1;
inline constexpr uint8_t kLinkEthernet = 2;

struct DeviceAttributes {
  char firmware[64];
  uint64_t nodeGuid;         // big-endian
  uint64_t systemImageGuid;  // big-endian; of the whole card
  uint64_t maxRegistration;
  uint64_t pageSizes;
  uint32_t vendor;
  uint32_t part;
  uint32_t hardware;
  int maxQueuePairs;
  int others[28];
  uint16_t maxPartitionKeys;
  uint8_t delay;
  uint8_t ports;
};

// What the exported ibv_query_port fills; newer fields are not asked for.
struct PortAttributes {
  int state;
  int maxMtu;
  int activeMtu;
  int addresses;
  uint32_t capabilities;
  uint32_t maxMessage;
  uint32_t badKeys;
  uint32_t badQueueKeys;
  uint16_t partitionKeys;
  uint16_t lid;
  uint16_t managerLid;
  uint8_t lidMask;
  uint8_t maxLanes;
  uint8_t managerLevel;
  uint8_t timeout;
  uint8_t initReply;
  uint8_t activeWidth;  // one bit
  uint8_t activeSpeed;  // one bit
  uint8_t physicalState;
  uint8_t linkLayer;
  uint8_t flags;
  uint16_t moreCapabilities;
  uint32_t reserved[4];
};

// F(member, symbol, result, parameters): every function of the library that we call.
#define NCCLRUN_VERBS_FUNCTIONS(F)                                      \
  F(getDeviceList, "ibv_get_device_list", Device*, (int*))              \
  F(freeDeviceList, "ibv_free_device_list", void, (Device*))            \
  F(getDeviceName, "ibv_get_device_name", const char*, (Device))        \
  F(openDevice, "ibv_open_device", Context, (Device))                   \
  F(closeDevice, "ibv_close_device", int, (Context))                    \
  F(queryDevice, "ibv_query_device", int, (Context, DeviceAttributes*)) \
  F(queryPort, "ibv_query_port", int, (Context, uint8_t, PortAttributes*))

struct Library {
#define NCCLRUN_VERBS_MEMBER(member, symbol, result, parameters) result(*member) parameters = nullptr;
  NCCLRUN_VERBS_FUNCTIONS(NCCLRUN_VERBS_MEMBER)
#undef NCCLRUN_VERBS_MEMBER
};

// Opens it (libibverbs.so.1, or what NCCLRUN_LIBIBVERBS names). False: `why` says in a sentence without its end what is
// missing.
bool open(Library& library, std::string& why);

}  // namespace ncclrun::verbs
