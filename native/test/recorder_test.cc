// The flight recorder: what each operation leaves in it, and what stays when the ring wraps.
#include "datapath/recorder.h"

#include <cstring>
#include <thread>

#include "agent/flight_recorder.h"
#include "support/check.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;
using plan::Collective;

namespace {

constexpr uint32_t kRanks = 3;

const ncclrunRecorderEntry& entry(const Rank& me, uint64_t sequence) {
  const auto& one = me.recorder->entries[(sequence - 1) % NCCLRUN_RECORDER_ENTRIES];
  EXPECT(one.sequence == sequence);
  return one;
}

Operation collectiveOf(Collective collective, const void* send, void* receive, size_t count, uint32_t root) {
  Operation operation = allReduceOf(send, receive, count, ncclFloat32, ncclMax);
  operation.collective = collective;
  operation.peer = root;
  return operation;
}

void everyCollective(Rank& me) {
  std::vector<float> from(kRanks * 8), to(kRanks * 8);
  const Collective all[] = {Collective::allReduce, Collective::allGather, Collective::reduceScatter,
                            Collective::broadcast, Collective::reduce,    Collective::allToAll,
                            Collective::gather,    Collective::scatter,   Collective::barrier};
  uint64_t sequence = 0;
  for (const Collective collective : all) {
    const size_t count = collective == Collective::barrier ? 0 : 8;
    EXPECT(me.run({collectiveOf(collective, from.data(), to.data(), count, 1)}) == ncclSuccess);
    const auto& one = entry(me, ++sequence);
    EXPECT(one.collective == uint8_t(collective) && one.operation == sequence && one.count == count);
    EXPECT(one.communicator == 7 && one.call == (ncclFloat32 | ncclMax << 4) && one.flags == 0);
    EXPECT(one.enqueuedNs > 0 && one.enqueuedNs <= one.startedNs && one.startedNs <= one.endedNs);
    const bool rooted = collective == Collective::broadcast || collective == Collective::reduce ||
                        collective == Collective::gather || collective == Collective::scatter;
    EXPECT(one.peer == (rooted ? 1 : ~0u));
  }
  EXPECT(me.run({collectiveOf(Collective::allReduce, to.data(), to.data(), 8, 0)}) == ncclSuccess);
  EXPECT(entry(me, ++sequence).flags == ncclrunRecordInPlace);
  EXPECT(me.recorder->lastSequence == sequence);
}

// Each ordered pair counts its own messages, so that both ends give a message one number.
void messages(Rank& me) {
  const uint32_t next = (me.number() + 1) % kRanks, previous = (me.number() + kRanks - 1) % kRanks;
  std::vector<char> out(16), in(16);
  for (uint32_t i = 1; i <= 3; i++) {
    EXPECT(me.run({sendOf(out.data(), 16, next), receiveOf(in.data(), 16, previous)}) == ncclSuccess);
    const auto& sent = entry(me, 2 * i - 1);
    const auto& received = entry(me, 2 * i);
    EXPECT(sent.flags == (ncclrunRecordInGroup | ncclrunRecordSend) && sent.peer == next && sent.operation == i);
    EXPECT(received.flags == ncclrunRecordInGroup && received.peer == previous && received.operation == i);
    EXPECT(sent.collective == uint8_t(Collective::sendRecv) && sent.count == 16 && sent.endedNs >= sent.startedNs);
  }
}

void wraps(Rank& me) {
  constexpr uint64_t kMore = 10;
  for (uint64_t i = 0; i < NCCLRUN_RECORDER_ENTRIES + kMore; i++) EXPECT(me.barrier() == ncclSuccess);
  EXPECT(me.recorder->lastSequence == NCCLRUN_RECORDER_ENTRIES + kMore);
  EXPECT(entry(me, NCCLRUN_RECORDER_ENTRIES + kMore).operation == NCCLRUN_RECORDER_ENTRIES + kMore);
  EXPECT(entry(me, kMore + 1).operation == kMore + 1);  // the oldest that is left
}

void abortedAndCancelled() {
  World world(oneHost(2, variant(plan::Algorithm::ring, 1, 4096)));
  const auto other = world.join(1);
  const auto me = world.join(0);
  std::thread connecting([&] { EXPECT(other->connect() == ncclSuccess); });
  EXPECT(me->connect() == ncclSuccess);
  connecting.join();
  std::vector<float> data(8);
  EXPECT(me->enqueue({allReduceOf(data.data(), data.data(), 8)}) == ncclSuccess);
  EXPECT(me->enqueue({allReduceOf(data.data(), data.data(), 8)}) == ncclSuccess);
  std::thread ending([&] {
    while (std::atomic_ref(me->recorder->entries[0].lastPeer).load() == ~0u) std::this_thread::yield();
    world.raiseAbort(0, ncclRemoteError, 1, "rank 1 was killed");
  });
  EXPECT(me->synchronize() == ncclRemoteError);
  ending.join();
  const auto& first = entry(*me, 1);
  EXPECT(first.flags == (ncclrunRecordInPlace | ncclrunRecordAborted) && first.lastPeer == 1 && first.endedNs != 0);
  const auto& second = entry(*me, 2);
  EXPECT((second.flags & ncclrunRecordCancelled) != 0 && second.startedNs == 0);
}

void communicatorsInTheTable() {
  FlightRecorder recorder;
  const int memory = makeSegment(NCCLRUN_RECORDER_BYTES);
  EXPECT(recorder.claim({}, "") == nullptr);
  EXPECT(recorder.open(memory, 5).ok());
  ncclUniqueId id{};
  std::vector<std::shared_ptr<const RecorderClaim>> claims;
  for (uint32_t i = 0; i < NCCLRUN_RECORDER_COMMUNICATORS; i++) {
    claims.push_back(recorder.claim({id, i, 4, 2}, "a name of more than thirty-one letters"));
    EXPECT(claims.back() != nullptr && claims.back()->index == i);
  }
  EXPECT(recorder.claim({id, 300, 4, 2}, "") == nullptr);
  const ncclrunRecorder& seen = *claims[0]->memory;
  EXPECT(seen.unlisted == 1 && seen.jobRank == 5 && seen.magic == NCCLRUN_RECORDER_MAGIC);
  EXPECT(std::strcmp(seen.communicators[3].name, "a name of more than thirty-one ") == 0);
  claims[9].reset();
  const auto again = recorder.claim({id, 301, 4, 1}, "");
  EXPECT(again->index == 9 && seen.communicators[9].generation == 2 && seen.communicators[9].epoch == 301);
  const int tooShort = makeSegment(4096);
  EXPECT(!FlightRecorder().open(tooShort, 0).ok());
}

PlanSpec threeRanks() { return oneHost(kRanks, variant(plan::Algorithm::ring, 1, 4096)); }

}  // namespace

TEST(every_collective_leaves_an_entry) { World(threeRanks()).run(everyCollective); }
TEST(both_ends_of_a_pair_number_a_message_alike) { World(threeRanks()).run(messages); }
TEST(the_ring_keeps_the_last_operations) { World(threeRanks()).run(wraps); }
TEST(operations_ended_by_an_abort_are_marked) { abortedAndCancelled(); }
TEST(the_table_lists_communicators_until_it_is_full) { communicatorsInTheTable(); }

TEST_MAIN
