// A program's side of libibverbs for tests: the library opened as the engine opens it, and ends of connections.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "../interface.h"

namespace stand_in_verbs {

// F(member, symbol, version, result, parameters)
#define STAND_IN_VERBS_FUNCTIONS(F)                                                                                    \
  F(getDeviceList, "ibv_get_device_list", "1.1", Device**, (int*))                                                     \
  F(freeDeviceList, "ibv_free_device_list", "1.1", void, (Device**))                                                   \
  F(getDeviceName, "ibv_get_device_name", "1.1", const char*, (Device*))                                               \
  F(openDevice, "ibv_open_device", "1.1", ContextHandle*, (Device*))                                                   \
  F(closeDevice, "ibv_close_device", "1.1", int, (ContextHandle*))                                                     \
  F(queryDevice, "ibv_query_device", "1.1", int, (ContextHandle*, DeviceAttributes*))                                  \
  F(queryPort, "ibv_query_port", "1.1", int, (ContextHandle*, uint8_t, PortAttributes*))                               \
  F(queryGid, "ibv_query_gid", "1.1", int, (ContextHandle*, uint8_t, int, Gid*))                                       \
  F(queryGidEx, "_ibv_query_gid_ex", "1.11", int, (ContextHandle*, uint32_t, uint32_t, GidEntry*, uint32_t, size_t))   \
  F(allocDomain, "ibv_alloc_pd", "1.1", DomainHandle*, (ContextHandle*))                                               \
  F(deallocDomain, "ibv_dealloc_pd", "1.1", int, (DomainHandle*))                                                      \
  F(registerMemory, "ibv_reg_mr", "1.1", RegionHandle*, (DomainHandle*, void*, size_t, int))                           \
  F(registerIova, "ibv_reg_mr_iova2", "1.8", RegionHandle*, (DomainHandle*, void*, size_t, uint64_t, unsigned))        \
  F(registerDmaBuf, "ibv_reg_dmabuf_mr", "1.12", RegionHandle*, (DomainHandle*, uint64_t, size_t, uint64_t, int, int)) \
  F(deregister, "ibv_dereg_mr", "1.1", int, (RegionHandle*))                                                           \
  F(createChannel, "ibv_create_comp_channel", "1.0", ChannelHandle*, (ContextHandle*))                                 \
  F(destroyChannel, "ibv_destroy_comp_channel", "1.0", int, (ChannelHandle*))                                          \
  F(createQueue, "ibv_create_cq", "1.1", CompletionQueueHandle*, (ContextHandle*, int, void*, ChannelHandle*, int))    \
  F(destroyQueue, "ibv_destroy_cq", "1.1", int, (CompletionQueueHandle*))                                              \
  F(getQueueEvent, "ibv_get_cq_event", "1.1", int, (ChannelHandle*, CompletionQueueHandle**, void**))                  \
  F(ackQueueEvents, "ibv_ack_cq_events", "1.1", void, (CompletionQueueHandle*, unsigned))                              \
  F(createPair, "ibv_create_qp", "1.1", QueuePairHandle*, (DomainHandle*, QueuePairOptions*))                          \
  F(modifyPair, "ibv_modify_qp", "1.1", int, (QueuePairHandle*, QueuePairAttributes*, int))                            \
  F(queryPair, "ibv_query_qp", "1.1", int, (QueuePairHandle*, QueuePairAttributes*, int, QueuePairOptions*))           \
  F(destroyPair, "ibv_destroy_qp", "1.1", int, (QueuePairHandle*))                                                     \
  F(getAsyncEvent, "ibv_get_async_event", "1.1", int, (ContextHandle*, AsyncEvent*))                                   \
  F(ackAsyncEvent, "ibv_ack_async_event", "1.1", void, (AsyncEvent*))                                                  \
  F(statusText, "ibv_wc_status_str", "1.1", const char*, (int))                                                        \
  F(eventText, "ibv_event_type_str", "1.1", const char*, (int))                                                        \
  F(forkInit, "ibv_fork_init", "1.1", int, ())                                                                         \
  F(isForkInitialized, "ibv_is_fork_initialized", "1.13", int, ())

struct Library {
#define STAND_IN_VERBS_MEMBER(member, symbol, version, result, parameters) result(*member) parameters = nullptr;
  STAND_IN_VERBS_FUNCTIONS(STAND_IN_VERBS_MEMBER)
#undef STAND_IN_VERBS_MEMBER
};

// Opens it; ends the process where a symbol of this version is missing. `handle` gets what dlopen gave.
Library openLibrary(const char* path, void** handle = nullptr);

// How a connection is made.
struct Terms {
  int timeout = 14, retries = 3, receiverRetries = 7, receiverTimer = 1;
  uint32_t sends = 128, receives = 128, inlineBytes = 0;
  bool signalsAll = false;
  uint32_t access = kRemoteWrite | kRemoteRead;
  uint32_t sendNumber = 0, receiveNumber = 0;
};

// What a peer must know of an end.
struct Peer {
  uint32_t number;
  Gid gid;
  uint16_t lid;
  uint64_t address;
  uint32_t key;
};

// One side of a connection, with a buffer of its own.
class End {
 public:
  End(const Library& library, const std::string& device, size_t bytes, int capacity = 256, int port = 1,
      bool hasChannel = false);
  ~End();
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void makePair(const Terms& terms);
  void destroyPair();
  // 0, or the error of the first transition that fails.
  int connect(const Peer& peer, const Terms& terms);
  int toInit(const Terms& terms);
  int toReceive(const Peer& peer, const Terms& terms);
  int toSend(const Terms& terms);
  Peer self() const;

  int post(int opcode, const Peer& peer, uint32_t bytes, uint32_t flags = kSignaled, uint64_t id = 7,
           uint32_t immediate = 42, size_t offset = 0);
  int postRaw(SendRequest request);
  int want(uint32_t bytes = 0, uint64_t id = 9);
  int poll(Completion& completion);
  // The next completion; false after so many milliseconds without.
  bool await(Completion& completion, double milliseconds = 20000);
  // Status of the next completion, -1 if there is none.
  int status(double milliseconds = 20000);
  int drain();
  int state();
  // The next asynchronous event, -1 if there is none for so many milliseconds; acknowledged.
  int event(double milliseconds);

  ContextHandle* context = nullptr;
  DomainHandle* domain = nullptr;
  ChannelHandle* channel = nullptr;
  CompletionQueueHandle* queue = nullptr;
  QueuePairHandle* pair = nullptr;
  RegionHandle* region = nullptr;
  PortAttributes port = {};
  Gid gid = {};
  std::vector<uint8_t> data;

 private:
  const Library& library_;
  int portNumber_;
  int gidIndex_ = 0;
};

// Connects two ends of this process, with queue pairs made for it.
int connectBoth(End& one, End& other, const Terms& terms);

}  // namespace stand_in_verbs
