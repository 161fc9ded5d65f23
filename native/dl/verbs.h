// libibverbs, opened at run time: names, types and numbers as rdma-core has them (infiniband/verbs.h), as far as we use
// them.
#pragma once
#include <cstdint>
#include <string>

#include "dl/verbs_types.h"

namespace ncclrun::verbs {

inline constexpr int kPortActive = 4;
inline constexpr uint8_t kLinkInfiniBand = 1;
inline constexpr uint8_t kLinkEthernet = 2;
inline constexpr uint8_t kGrhRequired = 1;  // of PortAttributes::flags

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

// F(member, symbol, version, result, parameters): the functions that every library has.
#define NCCLRUN_VERBS_FUNCTIONS(F)                                                                             \
  F(getDeviceList, "ibv_get_device_list", "IBVERBS_1.1", Device*, (int*))                                      \
  F(freeDeviceList, "ibv_free_device_list", "IBVERBS_1.1", void, (Device*))                                    \
  F(getDeviceName, "ibv_get_device_name", "IBVERBS_1.1", const char*, (Device))                                \
  F(openDevice, "ibv_open_device", "IBVERBS_1.1", Context*, (Device))                                          \
  F(closeDevice, "ibv_close_device", "IBVERBS_1.1", int, (Context*))                                           \
  F(queryDevice, "ibv_query_device", "IBVERBS_1.1", int, (Context*, DeviceAttributes*))                        \
  F(queryPort, "ibv_query_port", "IBVERBS_1.1", int, (Context*, uint8_t, PortAttributes*))                     \
  F(queryGid, "ibv_query_gid", "IBVERBS_1.1", int, (Context*, uint8_t, int index, Gid*))                       \
  F(forkInit, "ibv_fork_init", "IBVERBS_1.1", int, ())                                                         \
  F(allocPd, "ibv_alloc_pd", "IBVERBS_1.1", ProtectionDomain*, (Context*))                                     \
  F(deallocPd, "ibv_dealloc_pd", "IBVERBS_1.1", int, (ProtectionDomain*))                                      \
  F(regMr, "ibv_reg_mr", "IBVERBS_1.1", MemoryRegion*, (ProtectionDomain*, void*, size_t, int access))         \
  F(deregMr, "ibv_dereg_mr", "IBVERBS_1.1", int, (MemoryRegion*))                                              \
  F(createChannel, "ibv_create_comp_channel", "IBVERBS_1.0", CompletionChannel*, (Context*))                   \
  F(destroyChannel, "ibv_destroy_comp_channel", "IBVERBS_1.0", int, (CompletionChannel*))                      \
  F(createCq, "ibv_create_cq", "IBVERBS_1.1", CompletionQueue*,                                                \
    (Context*, int entries, void* owner, CompletionChannel*, int vector))                                      \
  F(destroyCq, "ibv_destroy_cq", "IBVERBS_1.1", int, (CompletionQueue*))                                       \
  F(getCqEvent, "ibv_get_cq_event", "IBVERBS_1.1", int, (CompletionChannel*, CompletionQueue**, void** owner)) \
  F(ackCqEvents, "ibv_ack_cq_events", "IBVERBS_1.1", void, (CompletionQueue*, unsigned))                       \
  F(createQp, "ibv_create_qp", "IBVERBS_1.1", QueuePair*, (ProtectionDomain*, QueuePairSetup*))                \
  F(modifyQp, "ibv_modify_qp", "IBVERBS_1.1", int, (QueuePair*, QueuePairAttributes*, int mask))               \
  F(destroyQp, "ibv_destroy_qp", "IBVERBS_1.1", int, (QueuePair*))                                             \
  F(getAsyncEvent, "ibv_get_async_event", "IBVERBS_1.1", int, (Context*, AsyncEvent*))                         \
  F(ackAsyncEvent, "ibv_ack_async_event", "IBVERBS_1.1", void, (AsyncEvent*))

// Those that newer ones have; null in others.
#define NCCLRUN_VERBS_OPTIONAL_FUNCTIONS(F)                                                  \
  F(regMrIova2, "ibv_reg_mr_iova2", "IBVERBS_1.8", MemoryRegion*,                            \
    (ProtectionDomain*, void*, size_t, uint64_t iova, unsigned access))                      \
  F(regDmaBufMr, "ibv_reg_dmabuf_mr", "IBVERBS_1.12", MemoryRegion*,                         \
    (ProtectionDomain*, uint64_t offset, size_t, uint64_t iova, int descriptor, int access)) \
  F(isForkInitialized, "ibv_is_fork_initialized", "IBVERBS_1.13", int, ())

struct Library {
#define NCCLRUN_VERBS_MEMBER(member, symbol, version, result, parameters) result(*member) parameters = nullptr;
  NCCLRUN_VERBS_FUNCTIONS(NCCLRUN_VERBS_MEMBER)
  NCCLRUN_VERBS_OPTIONAL_FUNCTIONS(NCCLRUN_VERBS_MEMBER)
#undef NCCLRUN_VERBS_MEMBER
};

// Opens it (libibverbs.so.1, or what NCCL_IBVERBS_LIB names). False: `why` says in a sentence without its end what is
// missing.
bool open(Library& library, std::string& why);

// The process's, opened at the first call and prepared for fork(): memory that is registered stays the parent's. Null
// with the reason in `why`.
const Library* library(std::string& why);

}  // namespace ncclrun::verbs
