// PlanView accepts right plans and names what is wrong in others; mutated ones are refused or read safely (run it with
// sanitizers).
#include <cstring>
#include <random>

#include "datapath/nic_list.h"
#include "plan/collnet_shape.h"
#include "plan/tree_shape.h"
#include "support/check.h"
#include "support/plan_builder.h"
#include "support/read_plan.h"

using namespace ncclrun;
using namespace ncclrun::test;

namespace {

plan::GpuNicRecord gpuNic(uint64_t card, uint32_t local, plan::GpuDirect receives) {
  return {.card = card,
          .local = local,
          .receives = uint8_t(receives),
          .sends = uint8_t(plan::GpuDirect::noReads),
          .reserved = {},
          .path = {'P', 'X', 'B', '\0'},
          .reserved2 = 0};
}

PlanSpec specimen() {
  PlanSpec spec = oneHost(5, variant(plan::Algorithm::ring, 2, 5000));
  spec.hostOf = {0, 1, 0, 1, 0};
  spec.rings = {{0, 2, 4, 1, 3}, {4, 2, 0, 3, 1}};
  spec.ports = {1, 2, 3, 4, 5};
  spec.nics = 2;
  spec.gpuNics = {gpuNic(plan::kAnyCard, 0, plan::GpuDirect::tooFar)};
  spec.aggregators = {4000, 4001};
  return spec;
}

// Opens the specimen after a change to its header and to its bytes.
template <class Change>
std::string sentenceAfter(Change change) {
  auto blob = encode(specimen(), 0);
  plan::Header header;
  memcpy(&header, blob.data(), sizeof header);
  change(header, blob);
  memcpy(blob.data(), &header, sizeof header);
  PlanView plan;
  return plan.open(blob).sentence;
}

template <class Record, class Change>
std::string sentenceAfter(plan::Section plan::Header::*section, uint32_t index, Change change) {
  return sentenceAfter([&](plan::Header& header, std::vector<std::byte>& blob) {
    std::byte* at = blob.data() + (header.*section).offset + index * sizeof(Record);
    Record record;
    memcpy(&record, at, sizeof record);
    change(record);
    memcpy(at, &record, sizeof record);
  });
}

bool says(const std::string& sentence, const char* part) {
  const bool fine = sentence.rfind("the plan ", 0) == 0 && sentence.find(part) != std::string::npos;
  if (!fine) fprintf(stderr, "said \"%s\", expected \"%s\"\n", sentence.c_str(), part);
  return fine;
}

}  // namespace

TEST(the_reader_accepts_valid_plans) {
  for (uint32_t host : {0u, 1u}) EXPECT(readEverything(encode(specimen(), host)));
  PlanView plan;
  const auto blob = encode(specimen(), 1);
  EXPECT(plan.open(blob).ok());
  EXPECT(plan.describe(3) == "rank 3 on host h2" && plan.hostAddress(0) == "127.0.0.1");
  EXPECT(plan.ring(1, 0) == 4 && plan.ringIndex(1, 3) == 3 && plan.sameHost(3) && !plan.sameHost(4));
}

TEST(the_reader_knows_the_nics_of_edges_and_pairs) {
  PlanView plan;
  const auto blob = encode(specimen(), 1);
  EXPECT(plan.open(blob).ok());
  EXPECT(plan.networkName() == "Socket" && plan.header().sockets == 1 && plan.header().socketThreads == 0);
  EXPECT(plan.nicCount() == 2 && plan.nicName(1) == "eth1" && plan.nicAddress(1) == "127.0.0.1");
  EXPECT(plan.nic(1).speedMbps == 10'000 && plan.nicName(0, 1) == "eth1");
  // Rank 4 is the third of its host, so it receives by the first of two NICs.
  EXPECT(plan.pairNic(4) == 0 && plan.pairNic(3) == 1 && plan.local(1).pairNic == 1);
  const auto local = plan.local(0);
  for (uint32_t i = 0; i < local.edgeCount; i++) {
    const auto edge = plan.edge(local.firstEdge + i);
    EXPECT(edge.kind == uint8_t(plan::EdgeKind::ring) && edge.steps == 4 && edge.stepBytes == 4096);
    const bool inside = plan.sameHost(edge.peer);
    EXPECT(edge.nic == (inside ? plan::kNoNic : edge.channel) && edge.peerNic == edge.nic);
    if (!inside) EXPECT(plan.describePeerNic(edge) == "eth" + std::to_string(edge.channel) + " of host h1");
  }
}

TEST(gpu_direct_is_found_by_the_card_of_a_device) {
  using plan::GpuDirect;
  PlanSpec spec = specimen();
  spec.gpuNics = {gpuNic(plan::kAnyCard, 0, GpuDirect::tooFar), gpuNic(0x1b00, 0, GpuDirect::allowed),
                  gpuNic(0x1b00, 1, GpuDirect::gpuRefuses)};
  const auto blob = encode(spec, 0);
  PlanView plan;
  EXPECT(plan.open(blob).ok());
  const auto verdict = [&](uint32_t local, std::string_view path) {
    return plan::GpuDirect(plan.gpuNic(local, path).receives);
  };
  EXPECT(verdict(0, "/sys/devices/pci0000:00/0000:00:01.0/0000:1b:00.0") == GpuDirect::allowed);
  EXPECT(verdict(0, "0000:1B:00.1") == GpuDirect::allowed);  // another port of the card
  EXPECT(verdict(0, "0000:1c:00.0") == GpuDirect::tooFar);
  EXPECT(verdict(0, "") == GpuDirect::tooFar);
  EXPECT(verdict(0, "/sys/devices/virtual/net/eth0") == GpuDirect::tooFar);
  EXPECT(verdict(1, "0000:1b:00.0") == GpuDirect::gpuRefuses);
  // Nothing is said of it.
  EXPECT(verdict(1, "0000:1c:00.0") == GpuDirect::tooFar);
  EXPECT(std::string(plan.gpuNic(1, "0000:1c:00.0").path) == "DIS");
}

TEST(programs_get_the_nics_of_every_host) {
  const auto blob = encode(specimen(), 0);
  ncclrunNic nics[3] = {};
  size_t count = 0;
  EXPECT(listNics(blob, 1, {nics, 1}, count).ok() && count == 2);
  EXPECT(std::string(nics[0].name) == "eth0" && nics[1].name[0] == '\0');
  EXPECT(listNics(blob, 1, nics, count).ok() && count == 2);
  EXPECT(std::string(nics[1].name) == "eth1" && std::string(nics[1].address) == "127.0.0.1");
  EXPECT(nics[1].speedMbps == 10'000 && nics[1].port == 0 && nics[1].gpuDirect == 0);
  EXPECT(listNics(blob, 2, nics, count).code == ncclInvalidArgument);
}

TEST(channels_of_a_pair_take_the_ports_of_their_rank_in_turn) {
  auto spec = specimen();
  const auto nicsOf = [&](uint32_t nics, uint32_t receiver) {
    spec.nics = nics;
    PlanView plan;
    const auto blob = encode(spec, 1);
    EXPECT(plan.open(blob).ok());
    std::string all;
    for (uint32_t channel = 0; channel < 4; channel++) all += std::to_string(plan.pairNic(receiver, channel));
    return all;
  };
  // Two ranks of host h2: each has two of four NICs, or of five one of them has three.
  EXPECT(nicsOf(4, 1) == "0101" && nicsOf(4, 3) == "2323");
  EXPECT(nicsOf(5, 1) == "0101" && nicsOf(5, 3) == "2342");
  EXPECT(nicsOf(2, 1) == "0000" && nicsOf(2, 3) == "1111");
  // Three ranks of host h1 share two, and have one of three each.
  EXPECT(nicsOf(2, 0) == "0000" && nicsOf(2, 2) == "1111" && nicsOf(2, 4) == "0000");
  EXPECT(nicsOf(3, 4) == "2222" && nicsOf(1, 4) == "0000");
  // A rank alone with a card of two ports.
  spec.hostOf = {0, 1};
  spec.rings = {{0, 1}, {0, 1}};
  spec.ports = {1, 2};
  EXPECT(nicsOf(2, 0) == "0101" && nicsOf(2, 1) == "0101");
}

TEST(a_plan_of_one_host_needs_no_nic) {
  PlanView plan;
  const auto blob = encode(oneHost(3, variant(plan::Algorithm::ring, 1, 4096)), 0);
  EXPECT(plan.open(blob).ok());
  EXPECT(plan.nicCount() == 0 && plan.networkName().empty() && plan.pairNic(2) == plan::kNoNic);
}

TEST(the_error_names_what_is_wrong_with_the_network) {
  using H = plan::Header;
  using Blob = std::vector<std::byte>;
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.sockets = 0; }), "0 sockets per connection"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.sockets = 64; }), "64 sockets per connection"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.socketThreads = 17; }), "17 threads"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.networkBytes = ~0u; }), "name of its network"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.networkBytes = 0; }), "does not name their network"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.nicTable.count = 3; }), "NICs of host 1 beyond"));
  const auto host = [](uint32_t index, auto change) {
    return sentenceAfter<plan::HostRecord>(&H::hostTable, index, change);
  };
  EXPECT(says(host(1, [](auto& r) { r.firstNic = 1; }), "NICs of host 1 behind"));
  EXPECT(says(host(1, [](auto& r) { r.nicCount = 0; }), "no NIC of host 1"));
  EXPECT(says(host(0, [](auto& r) { r.nicCount = 0x10000; }), "65536 NICs of host 0"));
  const auto nic = [](auto change) { return sentenceAfter<plan::NicRecord>(&H::nicTable, 1, change); };
  EXPECT(says(nic([](auto& r) { r.nameOffset = ~0u; }), "NIC 1 of host 0 outside its strings"));
  EXPECT(says(nic([](auto& r) { r.nameBytes = 0; }), "lacks the name of NIC 1"));
  EXPECT(says(nic([](auto& r) { r.gpuDirect = 2; }), "GPUDirect 2"));
  const auto card = [](auto change) { return sentenceAfter<plan::GpuNicRecord>(&H::gpuNicTable, 0, change); };
  EXPECT(says(card([](auto& r) { r.local = 3; }), "local rank 3 in GPU NIC 0"));
  EXPECT(says(card([](auto& r) { r.sends = 4; }), "GPUDirect 4 in GPU NIC 0"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.gpuNicTable.stride = 16; }), "gpuNicTable with records of 16 bytes"));
  const auto aggregator = [](auto change) {
    return sentenceAfter<plan::AggregatorRecord>(&H::aggregatorTable, 1, change);
  };
  EXPECT(says(aggregator([](auto& r) { r.port = 0; }), "port 0 of aggregator 1"));
  EXPECT(says(aggregator([](auto& r) { r.port = 0x10000; }), "port 65536 of aggregator 1"));
  EXPECT(says(aggregator([](auto& r) { r.addressBytes = ~0u; }), "address of aggregator 1 outside its strings"));
  EXPECT(says(sentenceAfter<plan::PeerRecord>(&H::peerTable, 3, [](auto& r) { r.pairNic = 2; }), "pairs of rank 3"));
  EXPECT(says(sentenceAfter<plan::PeerRecord>(&H::peerTable, 3, [](auto& r) { r.pairNic = 0xffff; }), "NIC 65535"));
  EXPECT(says(sentenceAfter<plan::LocalRecord>(&H::localTable, 0, [](auto& r) { r.pairNic = 1; }), "two different"));
  const auto edge = [](uint32_t index, auto change) {
    return sentenceAfter<plan::EdgeRecord>(&H::edgeTable, index, change);
  };
  // Rank 0: edge 0 to rank 2 of its host, edge 1 from rank 3 of another.
  EXPECT(says(edge(0, [](auto& r) { r.nic = 0; }), "a NIC in edge 0 of rank 0, which uses no network"));
  EXPECT(says(edge(0, [](auto& r) { r.gpuDirect = 1; }), "edge 0"));
  EXPECT(says(edge(1, [](auto& r) { r.nic = 2; }), "NIC 2 of 2"));
  EXPECT(says(edge(1, [](auto& r) { r.peerNic = plan::kNoNic; }), "NIC 65535 of the peer's 2"));
  EXPECT(says(edge(1, [](auto& r) { r.gpuDirect = 1; }), "a NIC without it"));
  EXPECT(says(edge(1, [](auto& r) { r.kind = 5; }), "kind 5"));
  EXPECT(says(edge(1, [](auto& r) { r.kind = uint8_t(plan::EdgeKind::pair); }), "3 ring edges of rank 0"));
  EXPECT(says(edge(0, [](auto& r) { r.kind = uint8_t(plan::EdgeKind::tree); }), "3 ring edges of rank 0"));
  EXPECT(says(edge(1, [](auto& r) { r.kind = uint8_t(plan::EdgeKind::tree); }), "which its tree does not"));
  EXPECT(says(edge(1, [](auto& r) { r.steps = 17; }), "17 slots"));
  EXPECT(says(edge(0, [](auto& r) { r.stepBytes = 64; }), "of rings that have 4 of 4096"));
  EXPECT(edge(1, [](auto& r) { r.stepBytes = 65'536; }).empty());
}

TEST(a_plan_can_list_edges_of_trees_and_pairs) {
  PlanSpec spec = specimen();
  // Rank 0 is above rank 2 in the tree of its host, and rank 1 below rank 0 in that of the hosts.
  spec.more = {{.rank = 0, .peer = 1, .kind = plan::EdgeKind::tree},
               {.rank = 0, .peer = 3, .kind = plan::EdgeKind::pair},
               {.rank = 2, .peer = 1, .kind = plan::EdgeKind::collnet}};
  EXPECT(readEverything(encode(spec, 0)));
  EXPECT(readEverything(encode(spec, 1)));
  spec.more.push_back(spec.more[0]);
  PlanView plan;
  EXPECT(says(plan.open(encode(spec, 0)).sentence, "twice"));
}

TEST(a_tree_can_be_turned_towards_every_root) {
  PlanView plan;
  const auto blob = encode(specimen(), 1);
  EXPECT(plan.open(blob).ok());
  for (uint32_t root = 0; root < 5; root++) {
    for (uint32_t rank = 0; rank < 5; rank++) {
      const TreePosition place = treePosition(plan, kTreeChannel, rank, root);
      for (const uint32_t child : place.children) EXPECT(treePosition(plan, kTreeChannel, child, root).parent == rank);
      uint32_t at = rank;
      for (int step = 0; at != root && step < 5; step++) at = treePosition(plan, kTreeChannel, at, root).parent;
      EXPECT(at == root);
    }
  }
}

TEST(the_chain_of_a_host_leads_through_all_its_ranks_to_a_member_of_the_group) {
  PlanView plan;
  const auto blob = encode(specimen(), 0);
  EXPECT(plan.open(blob).ok());
  for (uint32_t channel = 0; channel < 4; channel++) {
    std::vector<uint32_t> masters(plan.header().hosts), last(plan.header().hosts);
    for (uint32_t rank = 0; rank < plan.header().ranks; rank++) {
      const uint32_t host = plan.peer(rank).host;
      const ChainPosition place = chainPosition(plan, rank, channel);
      EXPECT(place.nearer.has_value() == (place.distance > 0));
      if (!place.nearer.has_value()) masters[host] = rank;
      if (place.nearer.has_value()) EXPECT(chainPosition(plan, *place.nearer, channel).farther == rank);
      if (place.farther.has_value()) EXPECT(chainPosition(plan, *place.farther, channel).nearer == rank);
      if (place.farther.has_value()) EXPECT(plan.peer(*place.farther).host == host);
      if (!place.farther.has_value()) last[host] = place.distance;
    }
    for (uint32_t host = 0; host < plan.header().hosts; host++) EXPECT(last[host] + 1 == plan.ranksOf(host));
    for (uint32_t rank = 0; rank < plan.header().ranks; rank++) {
      const bool isMaster = masters[plan.peer(rank).host] == rank;
      EXPECT(collnetGroup(plan, rank, channel, true) == (isMaster ? masters : std::vector<uint32_t>()));
    }
  }
}

TEST(the_error_names_what_is_wrong_with_a_plan) {
  using H = plan::Header;
  using Blob = std::vector<std::byte>;
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.magic++; }), "begins with"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.version = 9; }), "version 9"));
  EXPECT(says(sentenceAfter([](H&, Blob& b) {
                b.resize(100);
                b.resize(264);
              }),
              "bytes"));
  EXPECT(says(sentenceAfter([](H&, Blob& b) { b.pop_back(); }), "bytes"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.ringSteps = 17; }), "17"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.pairSteps = 1; }), "1 steps"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.copyChannels = 3; }), "3 of 2 channels"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.ranks = 6; }), "peerTable"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.peerTable.offset = ~0ull; }), "peerTable"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.edgeTable.count = ~0u; }), "edgeTable"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.variantTable.stride = 8; }), "variantTable"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.pairStride -= 64; }), "pair connections"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.barrierOffset = h.abortOffset; }), "over"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.doorbellOffset += 8; }), "multiple of 64"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.segmentBytes = 4096; }), "segment"));
  EXPECT(says(sentenceAfter<plan::PeerRecord>(&H::peerTable, 2, [](auto& r) { r.host = 2; }), "rank 2"));
  EXPECT(says(sentenceAfter<plan::PeerRecord>(&H::peerTable, 2, [](auto& r) { r.localIndex = 0; }), "rank 2"));
  EXPECT(says(sentenceAfter<plan::LocalRecord>(&H::localTable, 1, [](auto& r) { r.rank = 3; }), "rank 2"));
  EXPECT(says(sentenceAfter<plan::LocalRecord>(&H::localTable, 1, [](auto& r) { r.firstEdge = 99; }), "rank 2"));
  EXPECT(says(sentenceAfter<uint32_t>(&H::ringTable, 4, [](auto& r) { r = 2; }), "twice local rank 2 in ring 1"));
  EXPECT(says(sentenceAfter<uint32_t>(&H::ringTable, 4, [](auto& r) { r = 7; }), "local rank 7 in ring 1"));
  EXPECT(says(sentenceAfter<uint32_t>(&H::treeTable, 0, [](auto& r) { r = 1; }), "tree 0 of shape 0"));
  EXPECT(says(sentenceAfter<uint32_t>(&H::treeTable, 1, [](auto& r) { r = 1; }), "come to one top"));
  EXPECT(says(sentenceAfter<uint32_t>(&H::treeTable, 2, [](auto& r) { r = 3; }), "local rank 3 in tree 0"));
  EXPECT(says(sentenceAfter<plan::HostRingRecord>(&H::hostRingTable, 1, [](auto& r) { r.host = 0; }), "stop 1"));
  EXPECT(
      says(sentenceAfter<plan::HostRingRecord>(&H::hostRingTable, 1, [](auto& r) { r.firstPosition = 2; }), "stop 1"));
  EXPECT(says(sentenceAfter<plan::HostTreeRecord>(&H::hostTreeTable, 1, [](auto& r) { r.attachment = 3; }),
              "local rank 3"));
  EXPECT(says(sentenceAfter<plan::HostTreeRecord>(&H::hostTreeTable, 1, [](auto& r) { r.parent = 2; }), "of host 2"));
  EXPECT(says(sentenceAfter<plan::HostTreeRecord>(&H::hostTreeTable, 1, [](auto& r) { r.parent = 1; }), "one top"));
  EXPECT(says(sentenceAfter<plan::HostTreeRecord>(&H::hostTreeTable, 0, [](auto& r) { r.parent = 1; }), "one top"));
  EXPECT(says(sentenceAfter<plan::ChannelRecord>(&H::channelTable, 1, [](auto& r) { r.ring = 2; }), "channel 1"));
  EXPECT(says(sentenceAfter<plan::ShapeRecord>(&H::shapeTable, 1, [](auto& r) { r.firstRing = 0; }), "shape 1"));
  EXPECT(says(sentenceAfter<plan::ShapeRecord>(&H::shapeTable, 1, [](auto& r) { r.ranks = 3; }), "beyond"));
  EXPECT(says(sentenceAfter<plan::HostRecord>(&H::hostTable, 1, [](auto& r) { r.shape = 2; }), "shape 2 of 2"));
  EXPECT(says(sentenceAfter<plan::HostRecord>(&H::hostTable, 1, [](auto& r) { r.firstMember = 2; }), "host 1"));
  EXPECT(says(sentenceAfter<uint32_t>(&H::memberTable, 1, [](auto& r) { r = 4; }), "rank 4 as member 1"));
  EXPECT(says(sentenceAfter<plan::EdgeRecord>(&H::edgeTable, 0, [](auto& r) { r.peer = 4; }), "other end"));
  EXPECT(says(sentenceAfter<plan::EdgeRecord>(&H::edgeTable, 0, [](auto& r) { r.transport = 4; }), "transport 4"));
  EXPECT(says(sentenceAfter<plan::EdgeRecord>(&H::edgeTable, 1, [](auto& r) { r.transport = 0; }), "different hosts"));
  EXPECT(says(sentenceAfter<plan::TuningRecord>(&H::tuningTable, 1, [](auto& r) { r.upToBytes = 5; }), "ascend"));
  EXPECT(says(sentenceAfter<plan::TuningRecord>(&H::tuningTable, 0, [](auto& r) { r.variantCount = 99; }), "variant"));
  EXPECT(says(sentenceAfter<plan::VariantRecord>(&H::variantTable, 0, [](auto& r) { r.channels = 3; }), "3 of 2"));
  EXPECT(says(sentenceAfter<plan::VariantRecord>(&H::variantTable, 0, [](auto& r) { r.threads = 32; }), "32 threads"));
  EXPECT(says(sentenceAfter<plan::VariantRecord>(&H::variantTable, 0, [](auto& r) { r.chunkBytes = 0; }), "chunks"));
  EXPECT(says(sentenceAfter<plan::HostRecord>(&H::hostTable, 1, [](auto& r) { r.nameBytes = 1000; }), "host 1"));
}

TEST(the_error_names_what_the_device_lacks) {
  using H = plan::Header;
  using Blob = std::vector<std::byte>;
  const auto plugin = uint8_t(plan::Transport::plugin);
  EXPECT(says(sentenceAfter([&](H& h, Blob&) { h.otherHostTransport = plugin; }),
              "transport 4 between ranks of different"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.sameHostTransport = 2; }), "transport 2 between ranks of one host"));
  EXPECT(says(sentenceAfter<plan::VariantRecord>(&H::variantTable, 1, [](auto& r) { r.algorithm = 3; }),
              "algorithm tree with protocol simple for allGather in tuning row 1, which the host device"));
  EXPECT(says(sentenceAfter<plan::VariantRecord>(&H::variantTable, 0, [](auto& r) { r.algorithm = 7; }),
              "algorithm collnetChain with protocol simple for allReduce in tuning row 0, which the host device"));
  EXPECT(says(sentenceAfter<plan::VariantRecord>(&H::variantTable, 0,
                                                 [](auto& r) {
                                                   r.algorithm = 4;
                                                   r.requires_ = plan::kRequiresNetworkReduction;
                                                 }),
              "chooses collnet for allReduce in tuning row 0, and its hosts have no equal numbers of ranks"));
  EXPECT(
      says(sentenceAfter<plan::VariantRecord>(&H::variantTable, 0, [](auto& r) { r.algorithm = 8; }), "algorithm 8"));
  EXPECT(
      says(sentenceAfter<plan::VariantRecord>(&H::variantTable, 8, [](auto& r) { r.protocol = 1; }), "for sendRecv"));
  EXPECT(
      says(sentenceAfter<plan::VariantRecord>(&H::variantTable, 0, [](auto& r) { r.protocol = 2; }), "protocol ll128"));
  EXPECT(
      says(sentenceAfter<plan::VariantRecord>(&H::variantTable, 0, [](auto& r) { r.requires_ = 1; }), "last variant"));
}

TEST(a_plan_for_gpus_lists_no_edges) {
  PlanSpec spec = oneHost(2, variant(plan::Algorithm::ring, 1, 4096));
  spec.device = plan::Device::cuda;
  auto blob = encode(spec, 0);
  EXPECT(readEverything(blob));
  plan::Header header;
  memcpy(&header, blob.data(), sizeof header);
  const uint32_t many = 1000;
  memcpy(blob.data() + header.localTable.offset + offsetof(plan::LocalRecord, edgeCount), &many, sizeof many);
  PlanView plan;
  EXPECT(says(plan.open(blob).sentence, "1000 edges of rank 0"));
}

TEST(the_reader_rejects_mutated_plans_or_reads_them_safely) {
  std::mt19937 random(42);
  uint32_t accepted = 0;
  for (uint32_t host : {0u, 1u}) {
    const auto right = encode(specimen(), host);
    for (int round = 0; round < 20000; round++) {
      auto blob = right;
      const int changes = 1 + int(random() % 4);
      for (int i = 0; i < changes; i++) {
        const size_t at = random() % blob.size() / 4 * 4;
        const uint32_t values[] = {0, 1, 0xffffffff, 0x80000000, uint32_t(random()), uint32_t(random() % 300)};
        memcpy(&blob[at], &values[random() % 6], std::min<size_t>(4, blob.size() - at));
      }
      if (random() % 10 == 0) blob.resize(random() % (blob.size() + 1));
      accepted += readEverything(blob);
    }
  }
  EXPECT(accepted > 0);
}

TEST_MAIN
