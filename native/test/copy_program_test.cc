// Copy programs, carried out by threads on ordinary memory: every collective, rank and root gives what it must, and
// whatever is stored into was ready, whatever is read was there.
#include "cuda/copy_program.h"

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "plan/segment_format.h"
#include "support/check.h"

using namespace ncclrun;
using namespace ncclrun::cuda;
using plan::Collective;

namespace {

struct World {
  uint32_t ranks;
  std::vector<std::vector<char>> send, receive;
  std::vector<CopyFlags> words;  // [from × ranks + to]

  CopyFlags& between(uint32_t from, uint32_t to) { return words[from * ranks + to]; }
};

Pointer pointer(std::vector<char>& memory) { return reinterpret_cast<Pointer>(memory.data()); }

void await(uint32_t& word) {
  std::atomic_ref all(word);
  while (all.load(std::memory_order_acquire) == 0) std::this_thread::yield();
  all.store(0, std::memory_order_relaxed);
}
void tell(uint32_t& word) { std::atomic_ref(word).store(1, std::memory_order_release); }

// One rank's, one step after the other.
void carryOut(World& world, uint32_t rank, const CopyProgram& program) {
  std::vector<bool> isReady(world.ranks);
  for (const CopySender& sender : program.senders) tell(world.between(sender.peer, rank).ready);
  for (const CopyStage& stage : program.stages) {
    for (const Arrival& arrival : stage.after) await(world.between(arrival.peer, rank).arrived[arrival.part]);
    for (const Copy& copy : stage.copies) {
      if (copy.peer != rank && !isReady[copy.peer]) await(world.between(rank, copy.peer).ready);
      isReady[copy.peer] = true;
      std::memcpy(reinterpret_cast<void*>(copy.to), reinterpret_cast<void*>(copy.from), copy.bytes);
      if (copy.part != kNotSignalled) tell(world.between(rank, copy.peer).arrived[copy.part]);
    }
  }
  for (const Arrival& arrival : program.last) await(world.between(arrival.peer, rank).arrived[arrival.part]);
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

void testCollective(Collective collective, uint32_t ranks, uint32_t root, size_t bytes, uint32_t parts) {
  const size_t all = ranks * bytes;
  World world{ranks, {}, {}, std::vector<CopyFlags>(ranks * ranks)};
  std::vector<Pointer> targets;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    world.send.emplace_back(all);
    world.receive.emplace_back(all);
    for (size_t at = 0; at < all; at++) world.send[rank][at] = valueOf(rank, at);
    // Of an all_reduce each rank has its part before the copies begin.
    for (size_t at = rank * bytes; at < (rank + 1) * bytes && collective == Collective::allReduce; at++)
      world.receive[rank][at] = valueOf(rank, at);
  }
  for (auto& memory : world.receive) targets.push_back(pointer(memory));
  std::vector<uint64_t> sent(ranks * ranks), received(ranks * ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    const CopyBuffers buffers{pointer(world.send[rank]), pointer(world.receive[rank]), targets};
    const CopyProgram program = copyProgramFor(collective, rank, root, buffers, bytes, parts);
    for (const CopyStage& stage : program.stages) {
      for (const Copy& copy : stage.copies) sent[rank * ranks + copy.peer] += copy.peer == rank ? 0 : copy.bytes;
    }
    for (const CopySender& sender : program.senders) received[sender.peer * ranks + rank] += sender.bytes;
    threads.emplace_back([&world, rank, program] { carryOut(world, rank, program); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT(sent == received);
  for (uint32_t rank = 0; rank < ranks; rank++) {
    size_t wrong = 0;
    for (size_t at = 0; at < all; at++) wrong += world.receive[rank][at] != expected(collective, rank, root, bytes, at);
    EXPECT(wrong == 0);
  }
  for (const CopyFlags& one : world.words) {
    EXPECT(one.ready == 0);
    EXPECT(std::accumulate(std::begin(one.arrived), std::end(one.arrived), 0u) == 0);
  }
}

}  // namespace

TEST(every_collective_copies_the_right_bytes) {
  for (const auto collective : {Collective::allGather, Collective::allReduce, Collective::allToAll, Collective::gather,
                                Collective::scatter, Collective::broadcast}) {
    for (uint32_t ranks = 2; ranks <= 6; ranks++) {
      for (uint32_t root = 0; root < ranks; root += ranks - 1) {
        for (const size_t bytes : {size_t(1), size_t(100), size_t(4096), size_t(70001)}) {
          for (const uint32_t parts : {1u, 2u, 3u, kCopyParts}) {
            if (parts == 1 || collective == Collective::broadcast)
              testCollective(collective, ranks, root, bytes, parts);
          }
        }
      }
    }
  }
}

TEST_MAIN
