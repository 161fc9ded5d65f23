#include "plan/plan_view.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

#include "plan/segment_format.h"
#include "plan/variants.h"

namespace ncclrun {
namespace {

using plan::Section;

[[gnu::format(printf, 1, 2)]] Status wrong(const char* format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return {ncclInvalidArgument, std::string("the plan ") + text};
}

}  // namespace

Status PlanView::open(std::span<const std::byte> blob) {
  if (blob.size() < sizeof(plan::Header)) {
    return wrong("has %zu bytes; its header alone has %zu", blob.size(), sizeof(plan::Header));
  }
  blob_ = blob;
  std::memcpy(&header_, blob.data(), sizeof header_);
  for (auto check :
       {&PlanView::checkHeader, &PlanView::checkTransports, &PlanView::checkSlots, &PlanView::checkSections,
        &PlanView::checkSegment, &PlanView::checkHosts, &PlanView::checkNetwork, &PlanView::checkNics,
        &PlanView::checkGpuNics, &PlanView::checkAggregators, &PlanView::checkPeers, &PlanView::checkPairNics,
        &PlanView::checkShapes, &PlanView::checkMembers, &PlanView::checkHostRings, &PlanView::checkHostTrees,
        &PlanView::checkChannels, &PlanView::checkEdges, &PlanView::checkTuning}) {
    NCCLRUN_TRY((this->*check)());
  }
  indexTuning();
  ranksOfEachHost_ = countRanksOfEachHost();
  return {};
}

Status PlanView::openFor(plan::Device device, uint32_t rank, std::span<const std::byte> blob) {
  NCCLRUN_TRY(open(blob));
  if (header_.device != uint8_t(device)) {
    return wrong("is for the %s device, rank %u uses the %s device", nameOf(plan::Device(header_.device)), rank,
                 nameOf(device));
  }
  if (rank < header_.ranks && sameHost(rank)) return {};
  return wrong("is for host %s, where rank %u is not", std::string(hostName(header_.hostIndex)).c_str(), rank);
}

void PlanView::indexTuning() {
  firstTuning_.fill(header_.tuningTable.count);
  for (uint32_t row = header_.tuningTable.count; row-- > 0;) firstTuning_[tuning(row).collective] = row;
}

Status PlanView::checkHeader() const {
  const auto& h = header_;
  if (h.magic != plan::kMagic) return wrong("begins with %08x, a HostPlan begins with %08x", h.magic, plan::kMagic);
  if (h.version != plan::kVersion) return wrong("has version %u, this engine reads %u", h.version, plan::kVersion);
  if (h.headerBytes < sizeof(plan::Header))
    return wrong("has a header of %u bytes, at least %zu needed", h.headerBytes, sizeof(plan::Header));
  if (h.totalBytes != blob_.size()) {
    return wrong("says it has %llu bytes, it has %zu", (unsigned long long)h.totalBytes, blob_.size());
  }
  if (h.ranks == 0 || h.ranks > kMaxRanks) return wrong("has %u ranks; 1 to %u can be", h.ranks, kMaxRanks);
  if (h.hosts == 0 || h.hosts > h.ranks) return wrong("has %u hosts for %u ranks", h.hosts, h.ranks);
  if (h.hostIndex >= h.hosts) return wrong("is for host %u of %u", h.hostIndex, h.hosts);
  if (h.localRanks == 0 || h.localRanks > h.ranks) return wrong("has %u local ranks of %u", h.localRanks, h.ranks);
  const struct {
    const char* name;
    uint32_t count;
  } counts[] = {{"channels", h.channels},
                {"rings", h.rings},
                {"trees", h.trees},
                {"rings of hosts", h.hostRings},
                {"trees of hosts", h.hostTrees}};
  for (const auto& [name, count] : counts) {
    if (count == 0 || count > kMaxChannels) return wrong("has %u %s; 1 to %u can be", count, name, kMaxChannels);
  }
  if (h.ringSteps < 2 || h.ringSteps > kMaxSteps || h.pairSteps < 2 || h.pairSteps > kMaxSteps) {
    return wrong("has connections of %u and %u steps; 2 to %u can be", h.ringSteps, h.pairSteps, kMaxSteps);
  }
  if (h.ringStepBytes < 16 || h.ringStepBytes > (1u << 30) || h.pairStepBytes < 16 || h.pairStepBytes > (1u << 30)) {
    return wrong("has steps of %u and %u bytes; 16 to 2^30 can be", h.ringStepBytes, h.pairStepBytes);
  }
  if (h.device > uint8_t(plan::Device::cuda)) return wrong("is for device %u, which does not exist", h.device);
  if (h.smsPerLaunch == 0 || h.smsPerLaunch > h.channels)
    return wrong("has %u SMs per launch for %u channels", h.smsPerLaunch, h.channels);
  if (h.copyChannels == 0 || h.copyChannels > h.smsPerLaunch)
    return wrong("leaves %u of %u channels to copies", h.copyChannels, h.smsPerLaunch);
  if (h.spinNanoseconds > 1000000000u) {
    return wrong("lets ranks spin for %llu ns; at most a second can be", (unsigned long long)h.spinNanoseconds);
  }
  return {};
}

Status PlanView::checkTransports() const {
  const auto device = plan::Device(header_.device);
  for (const bool sameHost : {true, false}) {
    const uint8_t transport = sameHost ? header_.sameHostTransport : header_.otherHostTransport;
    if (hasTransport(device, sameHost, transport)) continue;
    return wrong("wants transport %u between ranks of %s, which the %s device does not have", transport,
                 sameHost ? "one host" : "different hosts", nameOf(device));
  }
  return {};
}

cuda::Slots PlanView::slots() const {
  const auto& h = header_;
  return {.channels = h.channels,
          .wideChannels = h.wideChannels,
          .pairSteps = h.pairSteps,
          .wideStepBytes = h.pairStepBytes,
          .narrowStepBytes = h.narrowStepBytes,
          .lineSteps = h.lineSteps,
          .llStepBytes = h.llStepBytes,
          .ll128StepBytes = h.ll128StepBytes,
          .ringSteps = h.ringSteps,
          .ringStepBytes = h.ringStepBytes,
          .headerBytes = h.hosts > 1 ? cuda::kNetHeaderBytes : 0};
}

Status PlanView::checkSlots() const {
  const auto& h = header_;
  if (h.device != uint8_t(plan::Device::cuda)) return {};
  for (const uint32_t steps : {h.ringSteps, h.pairSteps, h.lineSteps}) {
    if (steps < 2 || steps > kMaxSteps || (steps & (steps - 1)) != 0)
      return wrong("has connections of %u steps; on GPUs it has to be a power of two from 2 to %u", steps, kMaxSteps);
  }
  // Credit comes by halves of the slots, and a rank has three under way to its neighbour in a ring.
  if (h.lineSteps < 4) return wrong("has lines in %u steps; at least 4 are needed", h.lineSteps);
  constexpr uint32_t kMax = 64u << 20;
  for (const uint32_t bytes : {h.ringStepBytes, h.pairStepBytes, h.narrowStepBytes, h.llStepBytes, h.ll128StepBytes}) {
    if (bytes == 0 || bytes > kMax || bytes % 128 != 0)
      return wrong("has steps of %u bytes; on GPUs it has to be a multiple of 128 up to %u", bytes, kMax);
  }
  // Over a network both protocols take turns in one sequence of slots, from which a proxy sends either one's payload.
  if (h.hosts > 1 && h.lineSteps != h.pairSteps)
    return wrong("has lines in %u steps and pairs of %u; between hosts these have to be equal", h.lineSteps,
                 h.pairSteps);
  if (h.hosts > 1 && h.llStepBytes / 2 > std::min(h.pairStepBytes, h.narrowStepBytes))
    return wrong("has lines of %u bytes, too many for its slots between hosts", h.llStepBytes);
  if (h.wideChannels > h.channels) return wrong("has %u wide ones of %u channels", h.wideChannels, h.channels);
  // Between hosts pairs have connections on these alone.
  const uint32_t free = h.smsPerLaunch > h.copyChannels ? h.smsPerLaunch - h.copyChannels : 0;
  const uint32_t ofMessage = h.ranks < 2 ? 1 : std::max(free / (2 * (h.ranks - 1)), 1u);
  if (h.pairChannels > h.channels || (h.hosts > 1 && h.pairChannels < ofMessage))
    return wrong("has %u channels between hosts, and messages of %u of its %u", uint32_t(h.pairChannels), ofMessage,
                 h.channels);
  return {};
}

Status PlanView::checkSections() const {
  const auto& h = header_;
  const struct {
    const char* name;
    const Section& section;
    uint64_t recordBytes;
    uint64_t count;  // ~0: any
  } all[] = {
      {"hostTable", h.hostTable, sizeof(plan::HostRecord), h.hosts},
      {"peerTable", h.peerTable, sizeof(plan::PeerRecord), h.ranks},
      {"localTable", h.localTable, sizeof(plan::LocalRecord), h.localRanks},
      {"memberTable", h.memberTable, sizeof(uint32_t), h.ranks},
      {"channelTable", h.channelTable, sizeof(plan::ChannelRecord), h.channels},
      {"shapeTable", h.shapeTable, sizeof(plan::ShapeRecord), ~0ull},
      {"ringTable", h.ringTable, sizeof(uint32_t), ~0ull},
      {"treeTable", h.treeTable, sizeof(uint32_t), ~0ull},
      {"hostRingTable", h.hostRingTable, sizeof(plan::HostRingRecord), uint64_t(h.hostRings) * h.hosts},
      {"hostTreeTable", h.hostTreeTable, sizeof(plan::HostTreeRecord), uint64_t(h.hostTrees) * h.hosts},
      {"edgeTable", h.edgeTable, sizeof(plan::EdgeRecord), ~0ull},
      {"tuningTable", h.tuningTable, sizeof(plan::TuningRecord), ~0ull},
      {"variantTable", h.variantTable, sizeof(plan::VariantRecord), ~0ull},
      {"stringTable", h.stringTable, 1, ~0ull},
      {"nicTable", h.nicTable, sizeof(plan::NicRecord), ~0ull},
      {"gpuNicTable", h.gpuNicTable, sizeof(plan::GpuNicRecord), ~0ull},
      {"aggregatorTable", h.aggregatorTable, sizeof(plan::AggregatorRecord), ~0ull},
  };
  for (const auto& [name, section, recordBytes, count] : all) {
    const uint64_t bytes = uint64_t(section.count) * section.stride;
    if (section.offset > h.totalBytes || bytes > h.totalBytes - section.offset) {
      return wrong("has a %s that ends after byte %llu, its last", name, (unsigned long long)h.totalBytes);
    }
    if (section.count > 0 && section.stride < recordBytes) {
      return wrong("has a %s with records of %u bytes, at least %llu needed", name, section.stride,
                   (unsigned long long)recordBytes);
    }
    if (count != ~0ull && section.count != count) {
      return wrong("has a %s of %u records, %llu needed", name, section.count, (unsigned long long)count);
    }
  }
  return {};
}

Status PlanView::checkSegment() const {
  const auto& h = header_;
  const uint64_t pairs = uint64_t(h.localRanks) * h.localRanks;
  if (h.segmentBytes > (1ull << 46)) return wrong("has a segment of %llu bytes", (unsigned long long)h.segmentBytes);
  if (h.pairStride > (1ull << 46) / pairs)
    return wrong("has pair connections of %llu bytes", (unsigned long long)h.pairStride);
  const bool onGpus = h.device == uint8_t(plan::Device::cuda);
  const bool pairsInSegment = (onGpus || h.sameHostTransport == uint8_t(plan::Transport::shm)) && h.localRanks > 1;
  const uint64_t pairBytes = onGpus ? std::max(cuda::pairBytes(slots()), cuda::ringBytes(slots(), h.ranks))
                                    : connectionBytes(h.pairSteps, h.pairStepBytes);
  if (pairsInSegment && h.pairStride < pairBytes) {
    return wrong("has pair connections of %llu bytes for %u steps of %u", (unsigned long long)h.pairStride, h.pairSteps,
                 h.pairStepBytes);
  }
  const struct {
    const char* name;
    uint64_t offset, bytes;
  } all[] = {
      {"abort block", h.abortOffset, sizeof(AbortBlock)},
      {"doorbells", h.doorbellOffset, h.localRanks * sizeof(Doorbell)},
      {"node barrier", h.barrierOffset,
       sizeof(NodeBarrier) + (onGpus ? h.localRanks * (sizeof(DeviceRecord) + h.localRanks * kPairFlagBytes) : 0)},
      {"pair connections", h.pairOffset, pairsInSegment ? pairs * h.pairStride : 0},
  };
  for (const auto& [name, offset, bytes] : all) {
    if (offset % 64 != 0 || (pairsInSegment && h.pairStride % 64 != 0)) {
      return wrong("places the %s at byte %llu of the segment, not a multiple of 64", name, (unsigned long long)offset);
    }
    if (offset > h.segmentBytes || bytes > h.segmentBytes - offset) {
      return wrong("places the %s beyond the segment's %llu bytes", name, (unsigned long long)h.segmentBytes);
    }
    for (const auto& other : all) {
      if (&other.offset != &offset && offset < other.offset + other.bytes && other.offset < offset + bytes) {
        return wrong("places the %s over the %s in the segment", name, other.name);
      }
    }
  }
  return {};
}

std::string_view PlanView::text(uint32_t offset, uint32_t bytes) const {
  return {reinterpret_cast<const char*>(blob_.data()) + header_.stringTable.offset + offset, bytes};
}

std::string_view PlanView::hostName(uint32_t index) const {
  return text(host(index).nameOffset, host(index).nameBytes);
}
std::string_view PlanView::hostAddress(uint32_t index) const {
  return text(host(index).addressOffset, host(index).addressBytes);
}

std::string PlanView::describe(uint32_t rank) const {
  return "rank " + std::to_string(rank) + " on host " + std::string(hostName(peer(rank).host));
}

uint32_t PlanView::countRanksOfEachHost() const {
  const uint32_t ranks = shapeOf(0).ranks;
  for (uint32_t index = 1; index < header_.hosts; index++) {
    if (shapeOf(index).ranks != ranks) return 0;
  }
  return ranks;
}

uint32_t PlanView::maxRanksOfAHost() const {
  uint32_t max = 0;
  for (uint32_t index = 0; index < header_.hosts; index++) max = std::max(max, shapeOf(index).ranks);
  return max;
}

uint32_t PlanView::channelsBetween(uint32_t rank, uint32_t peer) const {
  const bool isRail = hasRails(plan::Device(header_.device), header_.hosts, ranksOfEachHost()) &&
                      this->peer(rank).localIndex == this->peer(peer).localIndex;
  return isRail ? header_.channels : header_.pairChannels;
}

Status PlanView::checkHosts() const {
  if (header_.stringTable.count > 0 && header_.stringTable.stride != 1)
    return wrong("has strings of stride %u", header_.stringTable.stride);
  for (uint32_t index = 0; index < header_.hosts; index++) {
    const auto record = host(index);
    if (!hasText(record.nameOffset, record.nameBytes) || !hasText(record.addressOffset, record.addressBytes)) {
      return wrong("has a name or address of host %u outside its strings", index);
    }
  }
  return {};
}

Status PlanView::checkPeers() const {
  uint32_t here = 0;
  for (uint32_t rank = 0; rank < header_.ranks; rank++) {
    const auto record = peer(rank);
    if (record.host >= header_.hosts) return wrong("puts rank %u on host %u of %u", rank, record.host, header_.hosts);
    if (record.listenPort > 65535) return wrong("gives rank %u port %u", rank, record.listenPort);
    if (record.host != header_.hostIndex) continue;
    // Local ranks ascend, so the k-th rank of this host has local index k.
    if (here >= header_.localRanks || record.localIndex != here || local(here).rank != rank) {
      return wrong("does not list rank %u as local rank %u of its host", rank, here);
    }
    here++;
  }
  if (here != header_.localRanks)
    return wrong("has %u ranks on this host, its local table %u", here, header_.localRanks);
  return {};
}

}  // namespace ncclrun
