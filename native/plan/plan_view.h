// Reads a HostPlan in place. open() checks everything once and trusts nothing; afterwards every accessor is safe for
// the indices it documents.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/launch_format.h"
#include "plan/plan_format.h"

namespace ncclrun {

class PlanView {
 public:
  static constexpr uint32_t kMaxSteps = 16;  // of a connection: Connection::stepBytes has so many
  static constexpr uint32_t kMaxRanks = 1u << 20;
  static constexpr uint32_t kMaxChannels = 256;

  // `blob` must outlive the view. ncclInvalidArgument with a sentence that begins "the plan …" if anything is wrong.
  Status open(std::span<const std::byte> blob);
  // The same for `rank`, whose buffers are on `device`: the plan has to be for both.
  Status openFor(plan::Device device, uint32_t rank, std::span<const std::byte> blob);

  const plan::Header& header() const { return header_; }
  plan::PeerRecord peer(uint32_t rank) const { return record<plan::PeerRecord>(header_.peerTable, rank); }
  plan::LocalRecord local(uint32_t index) const { return record<plan::LocalRecord>(header_.localTable, index); }
  plan::EdgeRecord edge(uint32_t index) const { return record<plan::EdgeRecord>(header_.edgeTable, index); }
  plan::TuningRecord tuning(uint32_t index) const { return record<plan::TuningRecord>(header_.tuningTable, index); }
  // Of the collective's rows, which lie together; behind all rows for a number that no collective has.
  uint32_t firstTuning(plan::Collective collective) const {
    return uint8_t(collective) < firstTuning_.size() ? firstTuning_[uint8_t(collective)] : header_.tuningTable.count;
  }
  plan::VariantRecord variant(uint32_t index) const { return record<plan::VariantRecord>(header_.variantTable, index); }
  // Rank at `index` of channel's ring. Logarithmic in the hosts.
  uint32_t ring(uint32_t channel, uint32_t index) const;
  // Index of `rank` in channel's ring.
  uint32_t ringIndex(uint32_t channel, uint32_t rank) const;
  // The rank above `rank` in channel's tree; kTop at its top.
  static constexpr uint32_t kTop = ~0u;
  uint32_t treeParent(uint32_t channel, uint32_t rank) const;
  // The ranks below `rank`, those on other hosts first. Linear in the hosts and in the ranks of this one.
  std::vector<uint32_t> treeChildren(uint32_t channel, uint32_t rank) const;
  std::string_view hostName(uint32_t host) const;
  std::string_view hostAddress(uint32_t host) const;

  // Name of the network backend that connects hosts; empty: no connection uses a network.
  std::string_view networkName() const { return text(header_.networkOffset, header_.networkBytes); }
  // The NICs of this host, by index; and of any host.
  uint32_t nicCount() const { return nicCount(header_.hostIndex); }
  plan::NicRecord nic(uint32_t index) const { return nic(header_.hostIndex, index); }
  std::string_view nicName(uint32_t index) const { return nicName(header_.hostIndex, index); }
  std::string_view nicAddress(uint32_t index) const { return nicAddress(header_.hostIndex, index); }
  uint32_t nicCount(uint32_t host) const { return this->host(host).nicCount; }
  plan::NicRecord nic(uint32_t host, uint32_t index) const {
    return record<plan::NicRecord>(header_.nicTable, this->host(host).firstNic + index);
  }
  std::string_view nicName(uint32_t host, uint32_t index) const;
  std::string_view nicAddress(uint32_t host, uint32_t index) const;
  // "eth0 of host h2": the NIC at the other end of an edge over a network.
  std::string describePeerNic(const plan::EdgeRecord& edge) const;
  // Of the rank with a local index and the card of a device, by the real path of that in /sys (empty: it has none). A
  // rank without records: every card is too far away.
  plan::GpuNicRecord gpuNic(uint32_t local, std::string_view pciPath) const;
  // Any record of this host.
  plan::GpuNicRecord gpuNic(uint32_t index) const { return record<plan::GpuNicRecord>(header_.gpuNicTable, index); }
  // Index of the NICs, at both ends, of the pair connection between ranks of different hosts by which `receiver`
  // receives. kNoNic: the plan has no network.
  uint32_t pairNic(uint32_t receiver) const { return peer(receiver).pairNic; }
  // On GPUs, whose pairs have connections on many channels: index of the NICs of that channel's. Where a host has more
  // NICs than ranks, each rank has a part of them to itself, ports of one card first, and its channels take them in
  // turn.
  uint32_t pairNic(uint32_t receiver, uint32_t channel) const;

  // The job's aggregators, where this communicator may use them.
  uint32_t aggregators() const { return header_.aggregatorTable.count; }
  plan::AggregatorRecord aggregator(uint32_t index) const {
    return record<plan::AggregatorRecord>(header_.aggregatorTable, index);
  }
  std::string_view aggregatorAddress(uint32_t index) const {
    return text(aggregator(index).addressOffset, aggregator(index).addressBytes);
  }

  // The rank with a local index on a host.
  uint32_t member(uint32_t host, uint32_t local) const {
    return record<uint32_t>(header_.memberTable, this->host(host).firstMember + local);
  }
  // 0: not all hosts have equally many.
  uint32_t ranksOfEachHost() const { return ranksOfEachHost_; }
  uint32_t maxRanksOfAHost() const;
  uint32_t ranksOf(uint32_t host) const { return shapeOf(host).ranks; }
  // On GPUs: the first ones, on which two ranks of different hosts have connections.
  uint32_t channelsBetween(uint32_t rank, uint32_t peer) const;
  bool sameHost(uint32_t rank) const { return peer(rank).host == header_.hostIndex; }
  // Of the pair connection between two local ranks, by local index.
  uint64_t pairOffset(uint32_t fromLocal, uint32_t toLocal) const {
    return header_.pairOffset + (uint64_t(fromLocal) * header_.localRanks + toLocal) * header_.pairStride;
  }
  // On GPUs.
  cuda::Slots slots() const;
  // "rank 3 on host h2".
  std::string describe(uint32_t rank) const;

 private:
  template <class Record>
  Record record(const plan::Section& section, uint32_t index) const {
    Record out;
    std::memcpy(&out, blob_.data() + section.offset + uint64_t(index) * section.stride, sizeof(Record));
    return out;
  }
  plan::HostRecord host(uint32_t index) const { return record<plan::HostRecord>(header_.hostTable, index); }
  plan::ChannelRecord channel(uint32_t index) const { return record<plan::ChannelRecord>(header_.channelTable, index); }
  plan::ShapeRecord shape(uint32_t index) const { return record<plan::ShapeRecord>(header_.shapeTable, index); }
  plan::ShapeRecord shapeOf(uint32_t host) const { return shape(this->host(host).shape); }
  plan::HostTreeRecord hostTree(uint32_t tree, uint32_t host) const {
    return record<plan::HostTreeRecord>(header_.hostTreeTable, tree * header_.hosts + host);
  }
  plan::HostRingRecord hostRing(uint32_t ring, uint32_t index) const {
    return record<plan::HostRingRecord>(header_.hostRingTable, ring * header_.hosts + index);
  }
  uint32_t ringEntry(const plan::ShapeRecord& shape, uint32_t ring, uint32_t position) const {
    return record<uint32_t>(header_.ringTable, shape.firstRing + ring * shape.ranks + position);
  }
  uint32_t treeEntry(const plan::ShapeRecord& shape, uint32_t tree, uint32_t local) const {
    return record<uint32_t>(header_.treeTable, shape.firstTree + tree * shape.ranks + local);
  }
  std::string_view text(uint32_t offset, uint32_t bytes) const;

  Status checkHeader() const;
  Status checkSlots() const;
  Status checkSections() const;
  Status checkSegment() const;
  Status checkHosts() const;
  Status checkNetwork() const;
  Status checkNics() const;
  Status checkGpuNics() const;
  Status checkPairNics() const;
  Status checkAggregators() const;
  Status checkPeers() const;
  Status checkMembers() const;
  Status checkShapes() const;
  Status checkShape(uint32_t index) const;
  Status checkHostRings() const;
  Status checkHostTrees() const;
  Status checkChannels() const;
  Status checkTransports() const;
  bool hasText(uint32_t offset, uint32_t bytes) const { return uint64_t(offset) + bytes <= header_.stringTable.count; }
  Status checkEdges() const;
  Status checkEdgesOf(uint32_t localIndex) const;
  Status checkEdge(const plan::EdgeRecord& edge, uint32_t rank, const std::string& which) const;
  Status checkRingEdge(const plan::EdgeRecord& edge, uint32_t rank, const std::string& which) const;
  Status checkEdgeNics(const plan::EdgeRecord& edge, const std::string& which) const;
  Status checkSharedEdges() const;
  Status checkTuning() const;
  Status checkRow(uint32_t index) const;
  void indexTuning();
  uint32_t countRanksOfEachHost() const;
  Status checkVariant(uint32_t index) const;

  std::span<const std::byte> blob_;
  plan::Header header_{};
  uint32_t ranksOfEachHost_ = 0;
  std::array<uint32_t, uint8_t(plan::Collective::barrier) + 1> firstTuning_{};
};

}  // namespace ncclrun
