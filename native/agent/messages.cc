#include "agent/messages.h"

namespace ncclrun {
namespace {

ncclResult_t resultOf(uint32_t code) {
  return code > ncclSuccess && code < ncclNumResults ? static_cast<ncclResult_t>(code) : ncclInternalError;
}

ByteWriter keyed(const Membership& membership) {
  ByteWriter writer;
  writer.raw(&membership.id, sizeof membership.id).u32(membership.epoch);
  return writer;
}

}  // namespace

Bytes encodeHello(uint32_t pid, int32_t jobRank, const std::string& jobId, const std::string& engineVersion) {
  ByteWriter writer;
  return writer.u32(kBootstrapProtocol).u32(pid).i32(jobRank).text(jobId).text(engineVersion).take();
}

Bytes encodeJoin(const Membership& membership, const PeerInfo& info) {
  return keyed(membership).u32(membership.size).u32(membership.rank).raw(&info, sizeof info).take();
}

Bytes encodeBarrier(const Membership& membership, uint32_t round) { return encodeGather(membership, round, {}); }

Bytes encodeGather(const Membership& membership, uint32_t round, std::span<const std::byte> own) {
  ByteWriter writer = keyed(membership);
  writer.u32(round).u32(membership.size).u32(membership.rank).u32(static_cast<uint32_t>(own.size()));
  return writer.raw(own.data(), own.size()).take();
}

Bytes encodeSplit(const Membership& membership, uint32_t round, int32_t colour, int32_t order, const PeerInfo& info,
                  const LeftOut& leftOut) {
  ByteWriter writer = keyed(membership);
  writer.u32(round).u32(membership.size).u32(membership.rank).i32(colour).i32(order);
  writer.raw(&info, sizeof info).u32(leftOut.gone ? kAllGone : static_cast<uint32_t>(leftOut.ranks.size()));
  for (const uint32_t rank : leftOut.ranks) writer.u32(rank);
  return writer.take();
}

Bytes encodeLeave(const Membership& membership, LeaveHow how, const std::string& reason, uint32_t round) {
  return keyed(membership).u32(membership.rank).u32(static_cast<uint32_t>(how)).text(reason).u32(round).take();
}

bool decodePlan(std::span<const std::byte> payload, Membership& membership) {
  ByteReader reader(payload);
  reader.u32();  // the local index; the plan says it too
  reader.raw(&membership.id, sizeof membership.id);
  membership.epoch = reader.u32();
  membership.size = reader.u32();
  membership.rank = reader.u32();
  return reader.complete();
}

bool decodeWelcome(std::span<const std::byte> payload, WelcomeMessage& message) {
  ByteReader reader(payload);
  message.hostIndex = reader.u32();
  message.hostCount = reader.u32();
  message.rankCount = reader.u32();
  message.epoch = reader.u32();
  message.jobId = reader.text();
  message.hostName = reader.text();
  return reader.complete();
}

bool decodeRefused(std::span<const std::byte> payload, Status& status) {
  ByteReader reader(payload);
  status.code = resultOf(reader.u32());
  status.sentence = reader.text();
  return reader.complete();
}

bool decodePeerGone(std::span<const std::byte> payload, PeerGoneMessage& message) {
  ByteReader reader(payload);
  reader.raw(&message.id, sizeof message.id);
  message.epoch = reader.u32();
  message.receiver = reader.u32();
  message.rank = reader.u32();
  message.status.code = resultOf(reader.u32());
  message.status.sentence = reader.text();
  message.waited = reader.u32() != 0;
  return reader.complete();
}

bool decodeAborted(std::span<const std::byte> payload, AbortedMessage& message) {
  ByteReader reader(payload);
  reader.raw(&message.id, sizeof message.id);
  message.epoch = reader.u32();
  message.rank = reader.u32();
  message.status.code = resultOf(reader.u32());
  message.status.sentence = reader.text();
  return reader.complete();
}

}  // namespace ncclrun
