// The binary interface of NCCL's collective networks (ncclCollNet), versions 6 to 12: what a plugin exports under the
// name ncclCollNetPlugin_vN beside its network. Properties, memory types and the log are those of abi.h.
#pragma once
#include "net/plugin/abi.h"

namespace ncclrun::net::plugin::abi {

// A piece of registered memory.
template <int V>
struct Part {
  void* registration;
  void* address;
  std::conditional_t<(V >= 9), size_t, uint32_t> bytes;
};

template <int V>
struct CollectiveSignatures {
  static auto init() {
    if constexpr (V <= 10) return static_cast<Result (*)(Log)>(nullptr);
    if constexpr (V >= 11) return static_cast<Result (*)(void**, uint64_t, Log)>(nullptr);
  }
};

// Members of versions from 8 on. A part is one piece of memory: plugins take no more.
template <int V>
struct Gathering {
  Result (*iallgather)(void* comm, void* send, int parts, Part<V>* receive, size_t bytesPerRank, size_t windowOffset,
                       size_t windowBytes, void* sendRegistration, void** request);
  Result (*ireducescatter)(void* comm, int parts, Part<V>* send, void* receive, size_t bytesPerRank,
                           size_t windowOffset, size_t windowBytes, int type, int op, void* receiveRegistration,
                           void** request);
};
template <int V>
requires(V <= 7) struct Gathering<V> {
};

// The last members, of versions from 9 and from 11 on.
template <int V>
struct CollectiveTail {
  Result (*makeVDevice)(int* device, VirtualDevice<(V >= 12 ? 8 : 4)>* members);
  Result (*finalize)(void* context);
};
template <int V>
requires(V == 9 || V == 10) struct CollectiveTail<V> {
  Result (*makeVDevice)(int* device, VirtualDevice<4>* members);
};
template <int V>
requires(V <= 8) struct CollectiveTail<V> {
};

// Types of data and operators are those of ncclDataType_t and ncclRedOp_t.
template <int V>
struct CollectiveTable {
  const char* name;
  decltype(CollectiveSignatures<V>::init()) init;
  Result (*devices)(int* count);
  Result (*getProperties)(int device, Properties<V>* properties);
  decltype(Signatures<V>::listen()) listen;
  // May block until all members have called it.
  Result (*connect)(void* handles[], int members, int rank, void* listener, void** comm);
  Result (*reduceSupport)(int type, int op, int* supported);
  Result (*regMr)(void* comm, void* data, RegionSize<V> bytes, int type, void** registration);
  Result (*regMrDmaBuf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int descriptor,
                        void** registration);
  Result (*deregMr)(void* comm, void* registration);
  Result (*iallreduce)(void* comm, void* send, void* receive, MessageSize<V> count, int type, int op,
                       void* sendRegistration, void* receiveRegistration, void** request);
  [[no_unique_address]] Gathering<V> gathering;
  Result (*iflush)(void* comm, void* data, int bytes, void* registration, void** request);
  Result (*test)(void* request, int* done, int* bytes);
  Result (*closeColl)(void* comm);
  Result (*closeListen)(void* listener);
  [[no_unique_address]] CollectiveTail<V> tail;
};

static_assert(sizeof(CollectiveTable<6>) == 120 && sizeof(CollectiveTable<7>) == 120);
static_assert(sizeof(CollectiveTable<8>) == 136 && sizeof(CollectiveTable<9>) == 144);
static_assert(sizeof(CollectiveTable<10>) == 144);
static_assert(sizeof(CollectiveTable<11>) == 152 && sizeof(CollectiveTable<12>) == 152);
static_assert(sizeof(Part<8>) == 24 && sizeof(Part<9>) == 24 && offsetof(Part<9>, bytes) == 16);

// Every member of a table has the size of a pointer, so a table is checked by the index of its members.
template <int V>
constexpr bool hasOrderOfCollectiveMembers() {
  using T = CollectiveTable<V>;
  constexpr size_t kWord = sizeof(void*);
  constexpr size_t kGathering = V >= 8 ? 2 : 0;
  static_assert(offsetof(T, init) == 1 * kWord && offsetof(T, listen) == 4 * kWord);
  static_assert(offsetof(T, connect) == 5 * kWord && offsetof(T, reduceSupport) == 6 * kWord);
  static_assert(offsetof(T, regMr) == 7 * kWord && offsetof(T, deregMr) == 9 * kWord);
  static_assert(offsetof(T, iallreduce) == 10 * kWord);
  static_assert(offsetof(T, iflush) == (11 + kGathering) * kWord && offsetof(T, test) == (12 + kGathering) * kWord);
  static_assert(offsetof(T, closeColl) == (13 + kGathering) * kWord);
  static_assert(offsetof(T, closeListen) == (14 + kGathering) * kWord);
  if constexpr (V >= 8) static_assert(offsetof(T, gathering.ireducescatter) == 12 * kWord);
  if constexpr (V >= 9) static_assert(offsetof(T, tail.makeVDevice) == 17 * kWord);
  if constexpr (V >= 11) static_assert(offsetof(T, tail.finalize) == 18 * kWord);
  return true;
}
static_assert(hasOrderOfCollectiveMembers<6>() && hasOrderOfCollectiveMembers<7>());
static_assert(hasOrderOfCollectiveMembers<8>() && hasOrderOfCollectiveMembers<9>());
static_assert(hasOrderOfCollectiveMembers<10>() && hasOrderOfCollectiveMembers<11>());
static_assert(hasOrderOfCollectiveMembers<12>());

}  // namespace ncclrun::net::plugin::abi
