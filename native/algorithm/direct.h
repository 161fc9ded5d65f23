// Direct: every rank has a connection to and from every other. Connection k belongs to the k-th other rank in ascending
// order. Blocks take turns; on the host there is one, because the connection of two ranks is one.
#pragma once
#include "algorithm/work.h"

namespace ncclrun {

// Number of the connection to `peer`.
NCCLRUN_FN uint32_t connectionTo(const Work& w, uint32_t peer) { return peer < w.rank ? peer : peer - 1; }

// Everybody sends everything to everybody and reduces it, in rank order: the same bits everywhere.
template <class P>
NCCLRUN_FN void directOneShotAllReduce(P& p, const Work& w) {
  if (w.ranks == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const size_t step = lesser(turnChunk(w, w.count, w.blocks), p.slotElements());
  for (size_t begin = w.block * step; begin < w.count; begin += w.blocks * step) {
    const size_t count = lesser(step, w.count - begin);
    // Begin with the next rank, so that not all write to the same one at once.
    for (uint32_t i = 1; i < w.ranks; i++) {
      p.send(connectionTo(w, (w.rank + i) % w.ranks), at(w.send, w, begin), count);
    }
    p.reduceAll(at(w.send, w, begin), w.rank, at(w.receive, w, begin), false, count);
  }
}

// A turn has one chunk per rank. Its owner reduces it, in rank order, and sends the result to everybody.
template <class P>
NCCLRUN_FN void directTwoShotAllReduce(P& p, const Work& w) {
  const size_t n = w.ranks;
  if (n == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const size_t slot = p.slotElements();
  size_t turn = 0;
  while (turn < w.count) {
    const size_t chunk = turnChunk(w, w.count - turn, n * w.blocks);
    const size_t base = turn + w.block * n * chunk;
    for (size_t part = 0; part < chunk; part += slot) {
      const size_t span = lesser(slot, chunk - part);
      auto begin = [&](uint32_t owner) { return base + owner * chunk + part; };
      auto count = [&](uint32_t owner) { return within(begin(owner), span, w.count); };
      for (uint32_t i = 1; i < n; i++) {
        const uint32_t owner = (w.rank + i) % w.ranks;
        p.send(connectionTo(w, owner), at(w.send, w, begin(owner)), count(owner));
      }
      p.reduceAll(at(w.send, w, begin(w.rank)), w.rank, at(w.receive, w, begin(w.rank)), true, count(w.rank));
      for (uint32_t i = 1; i < n; i++) {
        const uint32_t owner = (w.rank + n - i) % w.ranks;
        p.receive(connectionTo(w, owner), at(w.receive, w, begin(owner)), count(owner));
      }
    }
    turn += size_t(w.blocks) * n * chunk;
  }
}

// Dissemination: after round k everybody has heard, directly or not, from 2^(k+1) ranks. Connections: two per round, in
// round order.
template <class P>
NCCLRUN_FN void directBarrier(P& p, const Work& w) {
  uint32_t round = 0;
  for (uint32_t distance = 1; distance < w.ranks; distance *= 2, round++) {
    p.signal(round);
    p.await(round);
  }
}

}  // namespace ncclrun
