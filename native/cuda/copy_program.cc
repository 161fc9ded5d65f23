#include "cuda/copy_program.h"

#include <algorithm>

namespace ncclrun::cuda {
namespace {

using plan::Collective;

// Iterates from the next rank on, so that not all ranks store into the same one at once.
template <class Each>
void forEachOther(uint32_t rank, uint32_t ranks, Each&& each) {
  for (uint32_t distance = 1; distance < ranks; distance++) each((rank + distance) % ranks);
}

void addOwn(CopyProgram& program, uint32_t rank, Pointer to, Pointer from, size_t bytes) {
  if (to != from && bytes > 0) program.stages.back().copies.push_back({rank, to, from, bytes, kNotSignalled});
}

// Broadcasts in two steps: the root sends each of the others an equal share of every part, and they forward it to one
// another while the root sends the next part. So all links are used, and the root sends the data once.
CopyProgram broadcast(uint32_t rank, uint32_t root, const CopyBuffers& buffers, size_t bytes, uint32_t parts) {
  constexpr size_t kGrain = 128;
  const auto ranks = uint32_t(buffers.targets.size());
  const uint32_t others = ranks - 1;
  CopyProgram program;
  // The last two parts are smaller, because the data of the root's last copy has still to be forwarded.
  const auto weight = [&](uint32_t part) { return parts - part > 2 ? 4u : parts - part; };
  const size_t all = parts > 2 ? 4 * (parts - 2) + 3 : parts == 2 ? 3 : 1;
  const auto partBegin = [&](uint32_t part) {
    size_t before = 0;
    for (uint32_t one = 0; one < part; one++) before += weight(one);
    return part == parts ? bytes : std::min(bytes, bytes / all / kGrain * kGrain * before);
  };
  // The share of the part that goes through the rank.
  const auto share = [&](uint32_t part, uint32_t by) {
    const size_t begin = partBegin(part), length = partBegin(part + 1) - begin;
    const size_t number = (by + ranks - root) % ranks - 1;
    const size_t one = (length / others + kGrain) / kGrain * kGrain;
    const size_t from = std::min(length, number * one);
    return std::pair{begin + from, std::min(one, length - from)};
  };
  if (rank == root) {
    program.stages.emplace_back();
    for (uint32_t part = 0; part < parts; part++) {
      forEachOther(rank, ranks, [&](uint32_t peer) {
        const auto [begin, count] = share(part, peer);
        program.stages[0].copies.push_back({peer, buffers.targets[peer] + begin, buffers.send + begin, count, part});
      });
    }
    addOwn(program, rank, buffers.receive, buffers.send, bytes);
    return program;
  }
  uint64_t fromRoot = 0;
  for (uint32_t part = 0; part < parts; part++) {
    const auto [begin, count] = share(part, rank);
    fromRoot += count;
    program.stages.push_back({{{root, part}}, {}});
    forEachOther(rank, ranks, [&, begin = begin, count = count](uint32_t peer) {
      if (peer == root) return;
      program.stages.back().copies.push_back(
          {peer, buffers.targets[peer] + begin, buffers.receive + begin, count, part + 1 == parts ? 0 : kNotSignalled});
    });
  }
  program.senders.push_back({root, fromRoot});
  forEachOther(rank, ranks, [&](uint32_t peer) {
    if (peer == root) return;
    uint64_t all = 0;
    for (uint32_t part = 0; part < parts; part++) all += share(part, peer).second;
    program.senders.push_back({peer, all});
    program.last.push_back({peer, 0});
  });
  return program;
}

}  // namespace

bool receivesCopies(Collective collective, uint32_t rank, uint32_t root) {
  if (collective == Collective::gather) return rank == root;
  return (collective != Collective::scatter && collective != Collective::broadcast) || rank != root;
}

std::vector<uint32_t> copiesTo(Collective collective, uint32_t rank, uint32_t ranks, uint32_t root) {
  std::vector<uint32_t> all;
  if (collective == Collective::scatter && rank != root) return all;
  forEachOther(rank, ranks, [&](uint32_t peer) {
    const bool toRoot = peer == root;
    if (collective == Collective::gather ? toRoot : collective != Collective::broadcast || !toRoot) all.push_back(peer);
  });
  return all;
}

CopyProgram copyProgramFor(Collective collective, uint32_t rank, uint32_t root, const CopyBuffers& buffers,
                           size_t bytes, uint32_t parts) {
  const auto ranks = uint32_t(buffers.targets.size());
  if (collective == Collective::broadcast) return broadcast(rank, root, buffers, bytes, parts);
  CopyProgram program;
  program.stages.emplace_back();
  // Which part of the send buffer is a peer's, and where a rank's part lies at the receiver.
  const bool byPeer = collective == Collective::allToAll || collective == Collective::scatter;
  const bool byRank = collective != Collective::scatter;
  const auto source = [&](uint32_t peer) {
    if (collective == Collective::allReduce) return buffers.receive + rank * bytes;
    return buffers.send + (byPeer ? peer * bytes : 0);
  };
  const size_t offset = byRank ? rank * bytes : 0;
  for (const uint32_t peer : copiesTo(collective, rank, ranks, root))
    program.stages[0].copies.push_back({peer, buffers.targets[peer] + offset, source(peer), bytes, 0});
  const bool hasOwn = byRank ? receivesCopies(collective, rank, root) : rank == root;
  if (hasOwn) addOwn(program, rank, buffers.receive + offset, source(rank), bytes);
  if (!receivesCopies(collective, rank, root)) return program;
  forEachOther(rank, ranks, [&](uint32_t peer) {
    if (collective == Collective::scatter && peer != root) return;
    program.senders.push_back({peer, bytes});
    program.last.push_back({peer, 0});
  });
  return program;
}

}  // namespace ncclrun::cuda
