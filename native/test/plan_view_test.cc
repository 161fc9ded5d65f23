// PlanView accepts right plans and names what is wrong in others; mutated ones are refused or read safely (run it with
// sanitizers).
#include <cstring>
#include <random>

#include "support/check.h"
#include "support/plan_builder.h"
#include "support/read_plan.h"

using namespace ncclrun;
using namespace ncclrun::test;

namespace {

PlanSpec specimen() {
  PlanSpec spec = oneHost(5, form(plan::Algorithm::ring, 2, 5000));
  spec.hostOf = {0, 1, 0, 1, 0};
  spec.rings = {{0, 1, 2, 3, 4}, {4, 2, 0, 1, 3}};
  spec.ports = {1, 2, 3, 4, 5};
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

TEST(right_plans_are_read) {
  for (uint32_t host : {0u, 1u}) EXPECT(readEverything(encode(specimen(), host)));
  PlanView plan;
  const auto blob = encode(specimen(), 1);
  EXPECT(plan.open(blob).ok());
  EXPECT(plan.describe(3) == "rank 3 on host h2" && plan.hostAddress(0) == "127.0.0.1");
  EXPECT(plan.ring(1, 0) == 4 && plan.placeInRing(1, 3) == 4 && plan.sameHost(3) && !plan.sameHost(4));
}

TEST(what_is_wrong_is_said) {
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
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.ranks = 6; }), "peerTable"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.peerTable.offset = ~0ull; }), "peerTable"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.edgeTable.count = ~0u; }), "edgeTable"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.formTable.stride = 8; }), "formTable"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.pairStride -= 64; }), "pair connections"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.barrierOffset = h.abortOffset; }), "over"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.doorbellOffset += 8; }), "multiple of 64"));
  EXPECT(says(sentenceAfter([](H& h, Blob&) { h.segmentBytes = 4096; }), "segment"));
  EXPECT(says(sentenceAfter<plan::PeerRecord>(&H::peerTable, 2, [](auto& r) { r.host = 2; }), "rank 2"));
  EXPECT(says(sentenceAfter<plan::PeerRecord>(&H::peerTable, 2, [](auto& r) { r.localIndex = 0; }), "rank 2"));
  EXPECT(says(sentenceAfter<plan::LocalRecord>(&H::localTable, 1, [](auto& r) { r.rank = 3; }), "rank 2"));
  EXPECT(says(sentenceAfter<plan::LocalRecord>(&H::localTable, 1, [](auto& r) { r.firstEdge = 99; }), "rank 2"));
  EXPECT(says(sentenceAfter<uint32_t>(&H::ringTable, 6, [](auto& r) { r = 0; }), "channel 1"));
  EXPECT(says(sentenceAfter<uint32_t>(&H::ringTable, 6, [](auto& r) { r = 7; }), "rank 7"));
  EXPECT(says(sentenceAfter<plan::EdgeRecord>(&H::edgeTable, 0, [](auto& r) { r.peer = 4; }), "other end"));
  EXPECT(says(sentenceAfter<plan::EdgeRecord>(&H::edgeTable, 0, [](auto& r) { r.transport = 3; }), "transport 3"));
  EXPECT(says(sentenceAfter<plan::EdgeRecord>(&H::edgeTable, 0, [](auto& r) { r.transport = 0; }), "another host"));
  EXPECT(says(sentenceAfter<plan::TuningRecord>(&H::tuningTable, 1, [](auto& r) { r.upToBytes = 5; }), "ascend"));
  EXPECT(says(sentenceAfter<plan::TuningRecord>(&H::tuningTable, 0, [](auto& r) { r.formCount = 99; }), "form"));
  EXPECT(says(sentenceAfter<plan::FormRecord>(&H::formTable, 0, [](auto& r) { r.channels = 3; }), "3 of 2"));
  EXPECT(says(sentenceAfter<plan::FormRecord>(&H::formTable, 0, [](auto& r) { r.threads = 32; }), "32 threads"));
  EXPECT(says(sentenceAfter<plan::FormRecord>(&H::formTable, 0, [](auto& r) { r.chunkBytes = 0; }), "chunks"));
  EXPECT(says(sentenceAfter<plan::HostRecord>(&H::hostTable, 1, [](auto& r) { r.nameBytes = 1000; }), "host 1"));
}

TEST(mutated_plans_are_refused_or_read_safely) {
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
