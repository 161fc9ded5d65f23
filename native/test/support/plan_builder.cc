#include "support/plan_builder.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "plan/launch_format.h"
#include "plan/segment_format.h"
#include "plan/variants.h"

namespace ncclrun::test {
namespace {

template <class Record>
plan::Section append(std::vector<std::byte>& blob, const std::vector<Record>& records) {
  while (blob.size() % 8 != 0) blob.push_back(std::byte{0});
  const plan::Section section{blob.size(), uint32_t(records.size()), sizeof(Record)};
  const auto* bytes = reinterpret_cast<const std::byte*>(records.data());
  blob.insert(blob.end(), bytes, bytes + records.size() * sizeof(Record));
  return section;
}

using Rings = std::vector<std::vector<uint32_t>>;

// Every ring goes through the hosts in their order, and inside each as the given one does.
Rings ringsOf(const PlanSpec& spec, uint32_t hosts) {
  auto given = spec.rings;
  if (given.empty()) {
    given.emplace_back();
    for (uint32_t rank = 0; rank < spec.hostOf.size(); rank++) given[0].push_back(rank);
  }
  Rings rings;
  for (const auto& ring : given) {
    rings.emplace_back();
    for (uint32_t host = 0; host < hosts; host++) {
      for (const uint32_t rank : ring) {
        if (spec.hostOf[rank] == host) rings.back().push_back(rank);
      }
    }
  }
  return rings;
}

struct Channels {
  std::vector<uint32_t> members, firstMember, rings, trees;
  std::vector<plan::ChannelRecord> channels;
  std::vector<plan::ShapeRecord> shapes;
  std::vector<plan::HostRingRecord> hostRing;
  std::vector<plan::HostTreeRecord> hostTree;
};

// Each host has a shape of its own. Trees are binary, inside hosts and between them.
Channels channelsOf(const PlanSpec& spec, const Rings& rings, const std::vector<plan::PeerRecord>& peers,
                    uint32_t hosts) {
  Channels out;
  for (uint32_t i = 0; i < rings.size(); i++) out.channels.push_back({i, 0, 0, 0, i % spec.nics});
  for (uint32_t host = 0; host < hosts; host++) {
    out.firstMember.push_back(uint32_t(out.members.size()));
    for (uint32_t rank = 0; rank < spec.hostOf.size(); rank++) {
      if (spec.hostOf[rank] == host) out.members.push_back(rank);
    }
    const auto count = uint32_t(out.members.size()) - out.firstMember[host];
    out.shapes.push_back({count, uint32_t(out.rings.size()), uint32_t(out.trees.size()), 0});
    for (const auto& ring : rings) {
      for (const uint32_t rank : ring) {
        if (spec.hostOf[rank] == host) out.rings.push_back(peers[rank].localIndex);
      }
    }
    for (uint32_t local = 0; local < count; local++) out.trees.push_back(local == 0 ? 0 : (local - 1) / 2);
    out.hostRing.push_back({host, out.firstMember[host]});
    out.hostTree.push_back({host == 0 ? 0 : (host - 1) / 2, 0});
  }
  return out;
}

uint64_t roundUp(uint64_t value) { return (value + 63) / 64 * 64; }

struct Layout {
  plan::Header header{};
  uint64_t next = 0;

  uint64_t take(uint64_t bytes) {
    const uint64_t at = next;
    next = roundUp(next + bytes);
    return at;
  }
};

class Strings {
 public:
  // Offset and bytes.
  std::pair<uint32_t, uint32_t> add(const std::string& text) {
    const auto at = uint32_t(bytes_.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return {at, uint32_t(text.size())};
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  std::vector<char> bytes_;
};

bool usesNetwork(const PlanSpec& spec, uint32_t hosts) {
  return hosts > 1 || (spec.hostOf.size() > 1 && isNetwork(uint8_t(spec.sameHost)));
}

// The network transport from a rank of one host to one of another or the same; which NICs it uses.
plan::EdgeRecord edgeOf(const PlanSpec& spec, plan::EdgeRecord edge, uint32_t host) {
  const auto transport = spec.hostOf[edge.peer] == host ? spec.sameHost : spec.otherHost;
  const bool network = isNetwork(uint8_t(transport));
  edge.transport = uint8_t(transport);
  edge.nic = edge.peerNic = network ? uint16_t(edge.channel % spec.nics) : plan::kNoNic;
  edge.steps = spec.ringSteps;
  edge.stepBytes = spec.ringStepBytes;
  return edge;
}

}  // namespace

std::vector<std::byte> encode(const PlanSpec& spec, uint32_t host) {
  const auto ranks = uint32_t(spec.hostOf.size());
  uint32_t hosts = 1;
  for (uint32_t of : spec.hostOf) hosts = std::max(hosts, of + 1);
  const auto rings = ringsOf(spec, hosts);
  std::vector<plan::PeerRecord> peers;
  std::vector<uint32_t> locals, perHost(hosts, 0);
  const uint32_t nics = usesNetwork(spec, hosts) ? spec.nics : 0;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    const uint32_t local = perHost[spec.hostOf[rank]]++;
    const auto ofHost = uint32_t(std::count(spec.hostOf.begin(), spec.hostOf.end(), spec.hostOf[rank]));
    const uint32_t pairNic = nics == 0 ? plan::kNoNic : nics > ofHost ? local * nics / ofHost : local % nics;
    peers.push_back({spec.hostOf[rank], local, spec.ports.empty() ? 0 : spec.ports[rank], pairNic});
    if (spec.hostOf[rank] == host) locals.push_back(rank);
  }
  const Channels channels = channelsOf(spec, rings, peers, hosts);

  Layout layout;
  auto& h = layout.header;
  h.magic = plan::kMagic;
  h.version = plan::kVersion;
  h.headerBytes = sizeof h;
  h.ranks = ranks;
  h.hosts = hosts;
  h.hostIndex = host;
  h.localRanks = uint32_t(locals.size());
  h.channels = h.rings = uint32_t(rings.size());
  h.trees = h.hostRings = h.hostTrees = 1;
  h.copyChannels = 1;
  h.smsPerLaunch = h.channels;
  h.minCopyTimeoutMicroseconds = 30;
  h.maxCopyTimeoutMicroseconds = 1'000;
  h.capturedCopyTimeoutMicroseconds = 20'000;
  h.ringSteps = spec.ringSteps;
  h.ringStepBytes = spec.ringStepBytes;
  h.pairSteps = spec.pairSteps;
  h.pairStepBytes = spec.pairStepBytes;
  h.device = uint8_t(spec.device);
  const bool onGpus = spec.device == plan::Device::cuda;
  h.wideChannels = h.channels;
  h.pairChannels = uint16_t(h.channels);
  h.narrowStepBytes = h.llStepBytes = h.ll128StepBytes = 1024;
  h.lineSteps = 4;
  h.sameHostTransport = uint8_t(spec.sameHost);
  h.otherHostTransport = uint8_t(spec.otherHost);
  h.spinNanoseconds = spec.spinNanoseconds;
  h.sockets = 1;
  memset(h.token, spec.token, sizeof h.token);
  h.abortOffset = layout.take(sizeof(AbortBlock));
  h.doorbellOffset = layout.take(locals.size() * sizeof(Doorbell));
  const uint64_t records = locals.size() * (sizeof(DeviceRecord) + locals.size() * kPairFlagBytes);
  h.barrierOffset = layout.take(sizeof(NodeBarrier) + (onGpus ? records : 0));
  const cuda::Slots slots{h.channels,
                          h.wideChannels,
                          h.pairSteps,
                          h.pairStepBytes,
                          h.narrowStepBytes,
                          h.lineSteps,
                          h.llStepBytes,
                          h.ll128StepBytes,
                          h.ringSteps,
                          h.ringStepBytes,
                          0};
  h.pairStride = onGpus ? std::max(cuda::pairBytes(slots), cuda::ringBytes(slots, ranks))
                        : roundUp(connectionBytes(spec.pairSteps, spec.pairStepBytes));
  h.pairOffset = layout.take(locals.size() * locals.size() * h.pairStride);

  // A ring edge inside the host lies at a place both ends know: by channel and sender.
  std::vector<uint64_t> edgeOffset(rings.size() * ranks);
  for (auto& offset : edgeOffset) offset = layout.take(connectionBytes(spec.ringSteps, spec.ringStepBytes));
  std::vector<plan::LocalRecord> localRecords;
  std::vector<plan::EdgeRecord> edges;
  for (uint32_t rank : locals) {
    const auto first = uint32_t(edges.size());
    for (uint32_t channel = 0; channel < rings.size() && ranks > 1 && !onGpus; channel++) {
      const auto& ring = rings[channel];
      uint32_t place = 0;
      while (ring[place] != rank) place++;
      for (bool sends : {true, false}) {
        const uint32_t peer = ring[(place + (sends ? 1 : ranks - 1)) % ranks];
        plan::EdgeRecord edge{};
        edge.channel = channel;
        edge.peer = peer;
        edge.sends = sends;
        edge = edgeOf(spec, edge, host);
        const bool shm = edge.transport == uint8_t(plan::Transport::shm);
        edge.segmentOffset = shm ? edgeOffset[channel * ranks + (sends ? rank : peer)] : 0;
        edges.push_back(edge);
      }
    }
    for (const auto& [sender, receiver, kind] : spec.more) {
      if (sender != rank && receiver != rank) continue;
      plan::EdgeRecord edge{};
      edge.peer = sender == rank ? receiver : sender;
      edge.sends = sender == rank;
      edge.kind = uint8_t(kind);
      edges.push_back(edgeOf(spec, edge, host));
    }
    localRecords.push_back({rank, first, uint32_t(edges.size()) - first, peers[rank].pairNic});
  }
  h.segmentBytes = layout.next;

  std::vector<plan::TuningRecord> tuning;
  std::vector<plan::VariantRecord> variants;
  for (const Row& row : spec.rows) {
    const auto count = uint32_t(row.before.size() + 1);
    tuning.push_back({uint8_t(row.collective), {}, uint32_t(variants.size()), count, 0, row.upToBytes});
    variants.insert(variants.end(), row.before.begin(), row.before.end());
    variants.push_back(row.variant);
  }
  Strings strings;
  std::vector<plan::HostRecord> hostRecords;
  std::vector<plan::NicRecord> nicRecords;
  for (uint32_t i = 0; i < hosts; i++) {
    plan::HostRecord record{};
    record.shape = i;
    record.firstMember = channels.firstMember[i];
    record.firstNic = i * nics;
    record.nicCount = nics;
    std::tie(record.nameOffset, record.nameBytes) = strings.add(std::string(1, 'h') + std::to_string(i + 1));
    std::tie(record.addressOffset, record.addressBytes) = strings.add(spec.nicAddress);
    hostRecords.push_back(record);
    for (uint32_t nic = 0; nic < nics; nic++) {
      plan::NicRecord of{};
      of.speedMbps = 10'000;
      std::tie(of.nameOffset, of.nameBytes) = strings.add(std::string("eth") + std::to_string(nic));
      std::tie(of.addressOffset, of.addressBytes) = strings.add(spec.nicAddress);
      nicRecords.push_back(of);
    }
  }
  if (nics > 0) std::tie(h.networkOffset, h.networkBytes) = strings.add("Socket");
  std::vector<plan::AggregatorRecord> aggregators;
  for (const uint32_t port : spec.aggregators) {
    plan::AggregatorRecord record{};
    record.port = port;
    std::tie(record.addressOffset, record.addressBytes) = strings.add(spec.nicAddress);
    aggregators.push_back(record);
  }

  std::vector<std::byte> blob(sizeof h);
  h.hostTable = append(blob, hostRecords);
  h.peerTable = append(blob, peers);
  h.localTable = append(blob, localRecords);
  h.memberTable = append(blob, channels.members);
  h.channelTable = append(blob, channels.channels);
  h.shapeTable = append(blob, channels.shapes);
  h.ringTable = append(blob, channels.rings);
  h.treeTable = append(blob, channels.trees);
  h.hostRingTable = append(blob, channels.hostRing);
  h.hostTreeTable = append(blob, channels.hostTree);
  h.edgeTable = append(blob, edges);
  h.tuningTable = append(blob, tuning);
  h.variantTable = append(blob, variants);
  h.stringTable = append(blob, strings.bytes());
  h.nicTable = append(blob, nicRecords);
  h.gpuNicTable = append(blob, spec.gpuNics);
  h.aggregatorTable = append(blob, aggregators);
  h.totalBytes = blob.size();
  memcpy(blob.data(), &h, sizeof h);
  return blob;
}

namespace {

bool serves(plan::Algorithm algorithm, plan::Collective collective) {
  using plan::Algorithm, plan::Collective;
  switch (collective) {
    case Collective::allReduce:
      return true;
    case Collective::broadcast:
    case Collective::reduce:
      return algorithm != Algorithm::directTwoShot && algorithm != Algorithm::rail;
    case Collective::allGather:
    case Collective::reduceScatter:
      return algorithm == Algorithm::ring || algorithm == Algorithm::directOneShot || algorithm == Algorithm::rail;
    case Collective::barrier:
      return algorithm == Algorithm::ring || algorithm == Algorithm::directOneShot;
    default:
      return algorithm == Algorithm::directOneShot;
  }
}

}  // namespace

PlanSpec oneHost(uint32_t ranks, const plan::VariantRecord& variant) {
  PlanSpec spec;
  spec.hostOf.assign(ranks, 0);
  for (uint8_t number = 0; number <= uint8_t(plan::Collective::barrier); number++) {
    const auto collective = plan::Collective(number);
    Row row{collective, ~0ull, variant};
    if (!serves(plan::Algorithm(variant.algorithm), collective)) {
      const bool ring = serves(plan::Algorithm::ring, collective);
      row.variant = {
          uint8_t(ring ? plan::Algorithm::ring : plan::Algorithm::directOneShot), 0, 1, 64, 1 << 16, 0, 0, 0, 0};
    }
    spec.rows.push_back(row);
  }
  return spec;
}

}  // namespace ncclrun::test
