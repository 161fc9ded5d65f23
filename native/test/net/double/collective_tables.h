// The double's tables of a collective network: the calls of all versions, as overloads that lead to collective_calls.h.
#pragma once
#include "net/double/behaviour.h"
#include "net/double/collective_calls.h"
#include "net/double/overloads.h"
#include "net/plugin/collective_abi.h"

namespace ncclrun::test::doubled::collective {

using namespace ncclrun::net::plugin::abi;

namespace overloads {

// Versions before 11 have one context for the process.
inline void* onlyContext = nullptr;

inline int init(Log log) {
  if (onlyContext != nullptr) broken("init of a version before 11 is called twice");
  return collective::begin(&onlyContext, 0, log);
}
inline int init(void** context, uint64_t communicatorId, Log log) {
  return collective::begin(context, communicatorId, log);
}

template <typename Properties>
int getProperties(int device, Properties* out) {
  netProperties properties{};
  const int result = collective::properties(device, &properties);
  doubled::overloads::fill(properties, *out);
  return result;
}

inline int listen(int device, void* handle, void** listener) {
  return collective::listen(onlyContext, device, handle, listener);
}
inline int listen(void* context, int device, void* handle, void** listener) {
  return collective::listen(context, device, handle, listener);
}

template <typename Bytes>
int regMr(void* comm, void* data, Bytes bytes, int type, void** registration) {
  return collective::regMr(comm, data, size_t(bytes), type, registration);
}

template <typename Count>
int iallreduce(void* comm, void* send, void* receive, Count number, int type, int op, void* sendRegistration,
               void* receiveRegistration, void** request) {
  return collective::iallreduce(comm, send, receive, size_t(number), type, op, sendRegistration, receiveRegistration,
                                request);
}

template <typename Piece>
collPart onlyPart(int parts, const Piece* part) {
  if (parts != 1) broken("a collective of several parts");
  return {part->registration, part->address, size_t(part->bytes)};
}
template <typename Piece>
int iallgather(void* comm, void* send, int parts, Piece* receive, size_t bytesPerRank, size_t windowOffset,
               size_t windowBytes, void* sendRegistration, void** request) {
  return collective::iallgather(comm, send, onlyPart(parts, receive), bytesPerRank, windowOffset, windowBytes,
                                sendRegistration, request);
}
template <typename Piece>
int ireducescatter(void* comm, int parts, Piece* send, void* receive, size_t bytesPerRank, size_t windowOffset,
                   size_t windowBytes, int type, int op, void* receiveRegistration, void** request) {
  return collective::ireducescatter(comm, onlyPart(parts, send), receive, bytesPerRank, windowOffset, windowBytes, type,
                                    op, receiveRegistration, request);
}

}  // namespace overloads

template <int V>
CollectiveTable<V> makeTable() {
  CollectiveTable<V> t{};
  t.name = "Double";
  t.init = &overloads::init;
  t.devices = &collective::devices;
  if constexpr (V >= 11) t.tail.finalize = &collective::finalize;
  if (planted("coll-lacks") != 0) return t;
  t.getProperties = &overloads::getProperties<Properties<V>>;
  t.listen = &overloads::listen;
  t.connect = &collective::connect;
  t.reduceSupport = &collective::reduceSupport;
  t.regMr = &overloads::regMr<RegionSize<V>>;
  t.deregMr = &collective::deregMr;
  t.iallreduce = &overloads::iallreduce<MessageSize<V>>;
  if constexpr (V >= 8) t.gathering.iallgather = &overloads::iallgather<Part<V>>;
  if constexpr (V >= 8) t.gathering.ireducescatter = &overloads::ireducescatter<Part<V>>;
  t.iflush = &collective::iflush;
  t.test = &collective::test;
  t.closeColl = &collective::closeColl;
  t.closeListen = &collective::closeListen;
  return t;
}

}  // namespace ncclrun::test::doubled::collective
