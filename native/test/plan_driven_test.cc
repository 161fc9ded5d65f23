// A plan written by hand, and proof from the byte counters of each edge that exactly this happened.
#include <unistd.h>

#include <cstring>
#include <map>
#include <numeric>

#include "datapath/reduce.h"
#include "host/operation_runner.h"
#include "support/check.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;
using plan::Algorithm;
using plan::Collective;

namespace {

using EdgeName = std::tuple<uint32_t, uint32_t, uint32_t>;  // channel, peer, sends

std::map<EdgeName, uint64_t> bytesOf(Rank& rank) {
  std::map<EdgeName, uint64_t> out;
  for (const auto& edge : rank.edges()) out[{edge.channel, edge.peer, edge.sends}] = edge.bytes;
  return out;
}

plan::VariantRecord ll(plan::VariantRecord variant) {
  variant.protocol = uint8_t(plan::Protocol::ll);
  return variant;
}

// What the ring of row 17 sends over channel's edge from the rank at `place`, computed from the formula alone.
uint64_t ringBytes(uint64_t count, uint64_t chunk, uint64_t grain, uint32_t ranks, uint32_t channels, uint32_t channel,
                   uint32_t place, bool ll = false) {
  uint64_t elements = 0;
  for (uint64_t offset = 0; offset < count;) {
    const uint64_t parts = uint64_t(ranks) * channels;
    const uint64_t part = std::min(chunk, (count - offset + parts - 1) / parts);
    const bool whole = ll && (count - offset) / parts >= chunk;
    const uint64_t real = whole ? chunk : (part + grain - 1) / grain * grain;
    const auto length = [&](uint32_t piece) {
      const uint64_t begin = offset + (uint64_t(channel) * ranks + piece) * real;
      return begin >= count ? 0 : std::min(real, count - begin);
    };
    // Reduce-scatter sends all pieces but the next rank's own; all-gather all but the one after that.
    for (uint32_t piece = 0; piece < ranks; piece++) {
      if (piece != place) elements += length(piece);
      if (piece != (place + 1) % ranks) elements += length(piece);
    }
    offset += parts * real;
  }
  return elements * 4;
}

PlanSpec handWritten() {
  PlanSpec spec;
  spec.hostOf = {0, 0, 0, 0};
  spec.rings = {{0, 2, 1, 3}, {3, 0, 1, 2}, {1, 0, 3, 2}};
  spec.ringStepBytes = 2000;
  spec.ringSteps = 3;
  spec.rows = {
      {Collective::allReduce, 400, ll(variant(Algorithm::directOneShot, 1, 4096))},
      {Collective::allReduce, 1000, variant(Algorithm::directOneShot, 1, 4096)},
      {Collective::allReduce, 9000, variant(Algorithm::directTwoShot, 1, 500)},
      {Collective::allReduce, 50000, variant(Algorithm::ring, 2, 1004)},
      {Collective::allReduce, 60000, ll(variant(Algorithm::ring, 2, 4004))},
      {Collective::allReduce, ~0ull, variant(Algorithm::ring, 3, 10012, 100)},
      {Collective::sendRecv, ~0ull, variant(Algorithm::directOneShot, 1, 4096)},
      {Collective::barrier, ~0ull, variant(Algorithm::directOneShot, 1, 4096)},
  };
  return spec;
}

void carryExactly(const PlanSpec& spec) {
  World world(spec);
  world.run([&](Rank& me) {
    const uint32_t rank = me.number();
    std::vector<float> input(30001, float(rank + 1)), out(30001);
    const auto allReduce = [&](size_t count) {
      const auto before = bytesOf(me);
      std::fill(out.begin(), out.end(), 0.f);
      EXPECT(me.allReduce(input.data(), out.data(), count) == ncclSuccess);
      EXPECT(std::all_of(out.begin(), out.begin() + long(count), [](float x) { return x == 10; }));
      auto delta = bytesOf(me);
      for (const auto& [name, bytes] : before) delta[name] -= bytes;
      std::erase_if(delta, [](const auto& edge) { return edge.second == 0; });
      return delta;
    };

    // 400 and 1000 bytes: one shot. The whole buffer to and from each other rank, and nothing else.
    std::map<EdgeName, uint64_t> expected;
    for (uint64_t bytes : {400, 1000}) {
      for (uint32_t peer = 0; peer < 4; peer++) {
        for (uint32_t sends : {0u, 1u}) {
          if (peer != rank) expected[{~0u, peer, sends}] = bytes;
        }
      }
      EXPECT(allReduce(bytes / 4) == expected);
    }

    // 9000 bytes: two shots of 500-byte chunks (125 elements, in grains of 64: 128). 2250 elements are 4 whole turns
    // and one of 202 elements (chunks of 64: 64, 64, 64, 10). Each rank sends everybody their piece and its own piece.
    const auto piece = [](uint32_t owner) -> uint64_t { return (4 * 128 + (owner == 3 ? 10 : 64)) * 4; };
    expected.clear();
    for (uint32_t peer = 0; peer < 4; peer++) {
      for (uint32_t sends : {0u, 1u}) {
        if (peer != rank) expected[{~0u, peer, sends}] = piece(peer) + piece(rank);
      }
    }
    EXPECT(allReduce(2250) == expected);

    // 44000 bytes: rings 0 and 1; 52000 bytes: under LL, whose whole chunks are not rounded. 120004 bytes: all three,
    // with another chunk and grain; chunks larger than a slot.
    for (const auto& [count, channels, chunk, grain, lines] :
         {std::tuple(11000, 2u, 251, 64, false), std::tuple(13000, 2u, 1001, 128, true),
          std::tuple(30001, 3u, 2503, 136, false)}) {
      expected.clear();
      for (uint32_t channel = 0; channel < channels; channel++) {
        const auto& ring = spec.rings[channel];
        const auto place = uint32_t(std::find(ring.begin(), ring.end(), rank) - ring.begin());
        expected[{channel, ring[(place + 1) % 4], 1}] =
            ringBytes(count, chunk, grain, 4, channels, channel, place, lines);
        expected[{channel, ring[(place + 3) % 4], 0}] =
            ringBytes(count, chunk, grain, 4, channels, channel, (place + 3) % 4, lines);
      }
      EXPECT(allReduce(count) == expected);
    }
    EXPECT(me.barrier() == ncclSuccess);
  });
}

}  // namespace

// Connections of as few slots as there may be, of as many as a pair of pieces in the ring needs, and of more.
TEST(edges_carry_exactly_what_the_plan_says) {
  for (const uint32_t steps : {2u, 3u, 8u}) {
    PlanSpec spec = handWritten();
    spec.ringSteps = steps;
    carryExactly(spec);
  }
}

// 44000 bytes take two of the three rings: a group of two takes 0 and 1, then 2 and 0.
TEST(operations_of_a_group_take_the_channels_in_turn) {
  const PlanSpec spec = handWritten();
  World world(spec);
  world.run([&](Rank& me) {
    std::vector<float> input(11000, float(me.number() + 1)), first(11000), second(11000);
    const Operation one = allReduceOf(input.data(), first.data(), input.size());
    const Operation other = allReduceOf(input.data(), second.data(), input.size());
    EXPECT(me.run({one, other}) == ncclSuccess);
    EXPECT(std::all_of(first.begin(), first.end(), [](float x) { return x == 10; }) && first == second);
    const auto bytes = bytesOf(me);
    const auto placeIn = [&](uint32_t channel) {
      const auto& ring = spec.rings[channel];
      return uint32_t(std::find(ring.begin(), ring.end(), me.number()) - ring.begin());
    };
    const auto sent = [&](uint32_t channel) {
      const auto found = bytes.find({channel, spec.rings[channel][(placeIn(channel) + 1) % 4], 1});
      return found == bytes.end() ? 0 : found->second;
    };
    const auto share = [&](uint32_t channel, uint32_t block) {
      return ringBytes(input.size(), 251, 64, 4, 2, block, placeIn(channel));
    };
    EXPECT(sent(0) == share(0, 0) + share(0, 1));
    EXPECT(sent(1) == share(1, 1));
    EXPECT(sent(2) == share(2, 0));
  });
}

TEST(the_engine_takes_the_first_variant_whose_preconditions_hold) {
  PlanSpec spec = handWritten();
  for (auto& row : spec.rows) {
    if (row.collective != Collective::allReduce || row.upToBytes != ~0ull) continue;
    row.before = {row.variant, variant(Algorithm::ring, 1, 4096)};
    row.before[0].requires_ = plan::kRequiresRegisteredBuffers;
  }
  World world(spec);
  world.run([&](Rank& me) {
    std::vector<float> data(30001);
    EXPECT(me.allReduce(data.data(), data.data(), data.size()) == ncclSuccess);
    for (const auto& edge : me.edges()) EXPECT(edge.channel == 0 || edge.bytes == 0);
  });
}

TEST(the_error_names_what_the_host_device_lacks) {
  World world(handWritten());
  world.run([&](Rank& me) {
    float data[4] = {};
    EXPECT(me.allReduce(data, data, 4, ncclFloat32, ncclRedOp_t(int(kPreMulSum) + 1)) == ncclInvalidUsage);
    Operation gather = allReduceOf(data, data, 4);
    gather.collective = Collective::allGather;
    EXPECT(me.run({gather}) == ncclInvalidUsage);
    EXPECT_MORE(std::string(lastError()).find("the plan has no variant for it") != std::string::npos, lastError());
  });
}

namespace {

std::string refusal(const PlanSpec& spec, uint32_t rank) {
  const auto plan = encode(spec, 0);
  plan::Header header;
  memcpy(&header, plan.data(), sizeof header);
  const int segment = makeSegment(header.segmentBytes);
  const auto path = DataPath::open({.plan = plan, .segmentFd = segment, .rank = rank});
  close(segment);
  EXPECT(path.status().code == ncclInvalidArgument);
  return path.status().sentence;
}

}  // namespace

TEST(the_engine_rejects_a_plan_for_another_device_or_rank) {
  PlanSpec spec = handWritten();
  spec.ringStepBytes = spec.pairStepBytes = 4096;
  spec.ringSteps = 4;
  spec.device = plan::Device::cuda;
  const std::string device = refusal(spec, 1);
  EXPECT_MORE(device == "the plan is for the CUDA device, rank 1 uses the host device", device);
  spec.device = plan::Device::host;
  const std::string rank = refusal(spec, 4);
  EXPECT_MORE(rank == "the plan is for host h1, where rank 4 is not", rank);
}

// Connections that a plan does not have cannot be asked for: nothing would be done, and nobody would know.
TEST(an_operation_without_connections_fails) {
  PlanSpec spec = handWritten();
  spec.ringStepBytes = spec.pairStepBytes = 4096;
  spec.ringSteps = 4;
  spec.device = plan::Device::cuda;
  const auto blob = encode(spec, 0);
  PlanView plan;
  EXPECT(plan.open(blob).ok());
  const int memory = makeSegment(plan.header().segmentBytes);
  Segment segment;
  EXPECT(segment.map(memory, plan).ok());
  Interrupt interrupt(segment.abortBlock(), segment.doorbell(0));
  GonePeers gonePeers;
  Connections ends(plan, segment, 0, interrupt, gonePeers, -1);
  OperationRunner runner(plan, ends, 0);
  SpinWait spin(interrupt, segment.doorbell(0), 0);
  Telemetry telemetry(nullptr);
  const Recorder recorder(nullptr, 1);
  float data = 1;
  Launch launch;
  launch.first.operation = allReduceOf(&data, &data, 1);
  launch.first.variant = variant(Algorithm::ring, 1, 4096);
  const Status status = runner.run(launch, spin, telemetry, recorder);
  EXPECT(status.code == ncclInternalError);
  EXPECT_MORE(status.sentence.find("allReduce: the plan names no connection") == 0, status.sentence);
  close(memory);
}

TEST(info_and_host_names_match_the_plan) {
  PlanSpec spec = handWritten();
  spec.hostOf = {0, 1, 0, 1};
  World world(spec);
  world.run([](Rank& me) {
    ncclrunCommInfo info;
    me.path().info(info);
    EXPECT(info.rank == me.number() && info.size == 4 && info.localSize == 2 && info.hosts == 2);
    EXPECT(info.host == me.number() % 2 && info.localRank == me.number() / 2);
    EXPECT(std::string(me.path().hostName(1)) == "h2" && me.path().hostName(2) == nullptr);
    EXPECT(me.path().nodeBarrier().code == ncclSuccess);
  });
}

TEST_MAIN
