// Copy programs, carried out on ordinary memory in any order that streams may take, also where they share queues: every
// collective, rank and root gives what it must, whatever is stored into was ready, whatever is read was there, and no
// wait stands in front of what it waits for.
#include "core/copy_program.h"

#include <cstring>
#include <deque>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "core/segment_format.h"
#include "support/check.h"

using namespace ncclrun;
using namespace ncclrun::cuda;
using plan::Collective;

namespace {

constexpr int kRounds = 2;  // one behind the other: they have the same words

struct World {
  uint32_t ranks;
  std::vector<std::vector<char>> send, receive;
  std::vector<CopyWords> words;  // [from × ranks + to]
  std::vector<bool> open;        // the rank's buffer may be stored into

  CopyWords& between(uint32_t from, uint32_t to) { return words[from * ranks + to]; }
};

Pointer pointer(std::vector<char>& memory) { return reinterpret_cast<Pointer>(memory.data()); }

struct Step {
  std::function<bool()> may = [] { return true; };
  std::function<void()> go = [] {};
};

// A rank's streams, as CopyEngines has them (copy_engines.cc): the user's, and one for each lane to a peer. Each stream
// is one of `queues` queues, which begin their steps in the order in which they were given.
class Streams {
 public:
  Streams(World& world, uint32_t rank, size_t queues) : world_(world), rank_(rank), queues_(queues) {}

  // `ended`: at the end of the program, on the user's stream.
  void give(const CopyProgram& program, std::function<void()> ended) {
    add(kUsers, {.go = [this] { world_.open[rank_] = true; }});
    for (const CopySender& sender : program.senders) write(kUsers, world_.between(sender.peer, rank_).ready);
    std::vector<bool> awaited(world_.ranks);
    for (const CopyStage& stage : program.stages) {
      for (const Copy& copy : stage.copies) {
        if (copy.peer == rank_ || awaited[copy.peer]) continue;
        awaited[copy.peer] = true;
        await(kUsers, world_.between(rank_, copy.peer).ready);
      }
    }
    std::vector<bool> used(1 + world_.ranks * kCopyLanes);
    for (const CopyStage& stage : program.stages) {
      for (const Arrival& arrival : stage.after)
        await(kUsers, world_.between(arrival.peer, rank_).arrived[arrival.part]);
      const size_t forked = record(kUsers);
      std::vector<bool> follows(used.size());
      for (const Copy& copy : stage.copies) {
        const size_t line = 1 + copy.peer * kCopyLanes + copy.lane;
        EXPECT(copy.lane < kCopyLanes);
        if (!follows[line]) follow(line, forked);
        follows[line] = used[line] = true;
        begin(line, copy);
      }
    }
    for (size_t line = 1; line < used.size(); line++) {
      if (used[line]) follow(kUsers, record(line));
    }
    for (const Arrival& arrival : program.last)
      await(kUsers, world_.between(arrival.peer, rank_).arrived[arrival.part]);
    add(kUsers, {.go = [this, ended] {
          world_.open[rank_] = false;
          ended();
        }});
  }

  // The first steps of all queues that have any.
  void collect(std::vector<std::deque<Step>*>& out) {
    for (auto& queue : queues_) {
      if (!queue.empty()) out.push_back(&queue);
    }
  }

 private:
  static constexpr size_t kUsers = 0;

  void add(size_t stream, Step step) { queues_[stream % queues_.size()].push_back(std::move(step)); }
  void write(size_t stream, uint32_t& word) {
    add(stream, {.go = [&word] {
          EXPECT(word == 0);
          word = 1;
        }});
  }
  void await(size_t stream, uint32_t& word) {
    add(stream, {.may = [&word] { return word != 0; }, .go = [&word] { word = 0; }});
  }
  size_t record(size_t stream) {
    const size_t event = events_.size();
    events_.push_back(false);
    add(stream, {.go = [this, event] { events_[event] = true; }});
    return event;
  }
  void follow(size_t stream, size_t event) {
    add(stream, {.may = [this, event]() -> bool { return events_[event]; }});
  }
  void begin(size_t line, const Copy& copy) {
    add(line, {.go = [this, copy] {
          EXPECT(world_.open[copy.peer]);
          std::memcpy(reinterpret_cast<void*>(copy.to), reinterpret_cast<void*>(copy.from), copy.bytes);
        }});
    if (copy.part != kNotTold) write(line, world_.between(rank_, copy.peer).arrived[copy.part]);
  }

  World& world_;
  const uint32_t rank_;
  std::vector<std::deque<Step>> queues_;
  std::vector<bool> events_;
};

// In an order drawn at random, until nothing is left. False: steps are left that wait for each other.
bool carryOut(std::vector<Streams>& all, std::minstd_rand& random) {
  for (;;) {
    std::vector<std::deque<Step>*> queues;
    for (Streams& streams : all) streams.collect(queues);
    if (queues.empty()) return true;
    std::erase_if(queues, [](const auto* queue) { return !queue->front().may(); });
    if (queues.empty()) return false;
    std::deque<Step>& queue = *queues[random() % queues.size()];
    queue.front().go();
    queue.pop_front();
  }
}

char valueOf(uint32_t rank, size_t at) { return char(rank * 31 + at * 7 + at / 251 + 1); }

// What the rank's receive buffer holds at the end; 0: nothing comes there.
char expected(Collective collective, uint32_t rank, uint32_t root, size_t bytes, size_t at) {
  const auto from = uint32_t(at / bytes);
  switch (collective) {
    case Collective::allGather:
    case Collective::allReduce:
      return valueOf(from, collective == Collective::allGather ? at % bytes : at);
    case Collective::allToAll:
      return valueOf(from, rank * bytes + at % bytes);
    case Collective::gather:
      return rank == root ? valueOf(from, at % bytes) : char(0);
    case Collective::scatter:
      return at < bytes ? valueOf(root, rank * bytes + at) : char(0);
    default:
      return at < bytes ? valueOf(root, at) : char(0);
  }
}

struct Case {
  Collective collective;
  uint32_t ranks, root;
  size_t bytes;
  uint32_t parts;

  size_t all() const { return ranks * bytes; }
};

// As before a round. Of an all_reduce each rank has its part before the copies begin.
void clear(const Case& one, uint32_t rank, std::vector<char>& receive) {
  receive.assign(one.all(), 0);
  for (size_t at = rank * one.bytes; at < (rank + 1) * one.bytes && one.collective == Collective::allReduce; at++)
    receive[at] = valueOf(rank, at);
}

void testCase(const Case& one, size_t queues, uint32_t seed) {
  const auto& [collective, ranks, root, bytes, parts] = one;
  World world{ranks, {}, {}, std::vector<CopyWords>(ranks * ranks), std::vector<bool>(ranks)};
  std::vector<Pointer> targets;
  std::vector<std::vector<char>> results;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    world.send.emplace_back(one.all());
    world.receive.emplace_back();
    results.emplace_back(one.all());
    clear(one, rank, world.receive[rank]);
    for (size_t at = 0; at < one.all(); at++) {
      world.send[rank][at] = valueOf(rank, at);
      results[rank][at] = expected(collective, rank, root, bytes, at);
    }
  }
  for (auto& memory : world.receive) targets.push_back(pointer(memory));
  std::vector<uint64_t> sent(ranks * ranks), received(ranks * ranks);
  std::vector<Streams> streams;
  streams.reserve(ranks);  // steps know where theirs lies
  int ended = 0;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    const CopyBuffers buffers{pointer(world.send[rank]), pointer(world.receive[rank]), targets};
    const CopyProgram program = copyProgramFor(collective, rank, root, buffers, bytes, parts);
    for (const CopyStage& stage : program.stages) {
      for (const Copy& copy : stage.copies) sent[rank * ranks + copy.peer] += copy.peer == rank ? 0 : copy.bytes;
    }
    for (const CopySender& sender : program.senders) received[sender.peer * ranks + rank] += sender.bytes;
    streams.emplace_back(world, rank, queues);
    for (int round = 0; round < kRounds; round++) {
      streams.back().give(program, [&, rank] {
        // What comes now in the user's stream finds it there.
        EXPECT(world.receive[rank] == results[rank]);
        clear(one, rank, world.receive[rank]);
        ended++;
      });
    }
  }
  EXPECT(sent == received);
  std::minstd_rand random(seed);
  EXPECT(carryOut(streams, random));
  EXPECT(ended == kRounds * int(ranks));
  for (const CopyWords& words : world.words) {
    EXPECT(words.ready == 0);
    EXPECT(std::accumulate(std::begin(words.arrived), std::end(words.arrived), 0u) == 0);
  }
}

// All streams in one queue, in three, and each in one of its own.
void testOrders(const Case& one) {
  const size_t streams = 1 + one.ranks * kCopyLanes;
  for (const size_t queues : {size_t(1), size_t(3), streams}) {
    const uint32_t orders = queues == streams ? 3 : 1;
    for (uint32_t seed = 1; seed <= orders; seed++) testCase(one, queues, seed);
  }
}

}  // namespace

TEST(everyCollectiveEndsWithWhatItMustInAnyOrderOfLanes) {
  for (const auto collective : {Collective::allGather, Collective::allReduce, Collective::allToAll, Collective::gather,
                                Collective::scatter, Collective::broadcast}) {
    for (uint32_t ranks = 2; ranks <= 6; ranks++) {
      for (uint32_t root = 0; root < ranks; root += ranks - 1) {
        for (const size_t bytes : {size_t(1), size_t(100), size_t(4096), size_t(20011)}) {
          for (const uint32_t parts : {1u, 2u, 3u, 4u, kCopyParts}) {
            if (parts == 1 || collective == Collective::broadcast) testOrders({collective, ranks, root, bytes, parts});
          }
        }
      }
    }
  }
}

// The next part is under way while a lane waits until the word of its part is written.
TEST(partsOfABroadcastGoByTheLanesInTurn) {
  constexpr uint32_t kRanks = 3;
  constexpr size_t kBytes = 16 << 20;
  const std::vector<Pointer> targets(kRanks);
  const CopyProgram program = copyProgramFor(Collective::broadcast, 0, 0, {0, 0, targets}, kBytes, kCopyParts);
  for (uint32_t peer = 1; peer < kRanks; peer++) {
    uint32_t part = 0;
    for (const Copy& copy : program.stages[0].copies) {
      if (copy.peer != peer) continue;
      EXPECT(copy.part == part);
      EXPECT(copy.lane == part % kCopyLanes);
      part++;
    }
    EXPECT(part == kCopyParts);
  }
}

TEST_MAIN
