// Reads a HostPlan in place. open() checks everything once and trusts nothing; afterwards every accessor is safe for
// the indices it documents.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/plan_format.h"

namespace ncclrun {

class PlanView {
 public:
  static constexpr uint32_t kMaxSteps = 16;  // of a connection: Connection::stepBytes has so many
  static constexpr uint32_t kMaxRanks = 1u << 20;
  static constexpr uint32_t kMaxChannels = 256;

  // `blob` must outlive the view. ncclInvalidArgument with a sentence that begins "the plan …" if anything is wrong.
  Status open(std::span<const std::byte> blob);

  const plan::Header& header() const { return header_; }
  plan::PeerRecord peer(uint32_t rank) const { return record<plan::PeerRecord>(header_.peerTable, rank); }
  plan::LocalRecord local(uint32_t index) const { return record<plan::LocalRecord>(header_.localTable, index); }
  plan::EdgeRecord edge(uint32_t index) const { return record<plan::EdgeRecord>(header_.edgeTable, index); }
  plan::TuningRecord tuning(uint32_t index) const { return record<plan::TuningRecord>(header_.tuningTable, index); }
  plan::FormRecord form(uint32_t index) const { return record<plan::FormRecord>(header_.formTable, index); }
  // Rank at `place` of channel's ring.
  uint32_t ring(uint32_t channel, uint32_t place) const {
    return record<uint32_t>(header_.ringTable, channel * header_.ranks + place);
  }
  // Place of `rank` in channel's ring. Linear in the ranks.
  uint32_t placeInRing(uint32_t channel, uint32_t rank) const;
  std::string_view hostName(uint32_t host) const;
  std::string_view hostAddress(uint32_t host) const;

  bool sameHost(uint32_t rank) const { return peer(rank).host == header_.hostIndex; }
  // Of the pair connection between two local ranks, by local index.
  uint64_t pairOffset(uint32_t fromLocal, uint32_t toLocal) const {
    return header_.pairOffset + (uint64_t(fromLocal) * header_.localRanks + toLocal) * header_.pairStride;
  }
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
  std::string_view text(uint32_t offset, uint32_t bytes) const;

  Status checkHeader() const;
  Status checkSections() const;
  Status checkSegment() const;
  Status checkHosts() const;
  Status checkPeers() const;
  Status checkRings() const;
  Status checkEdges() const;
  Status checkTuning() const;
  Status checkForm(uint32_t index) const;

  std::span<const std::byte> blob_;
  plan::Header header_{};
};

}  // namespace ncclrun
