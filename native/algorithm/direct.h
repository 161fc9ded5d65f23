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

// Everybody's count elements to everybody. receive holds n × count.
template <class P>
NCCLRUN_FN void directAllGather(P& p, const Work& w) {
  const size_t step = lesser(turnChunk(w, w.count, w.blocks), p.slotElements());
  for (size_t begin = w.block * step; begin < w.count; begin += w.blocks * step) {
    const size_t count = lesser(step, w.count - begin);
    for (uint32_t i = 1; i < w.ranks; i++) {
      p.send(connectionTo(w, (w.rank + i) % w.ranks), at(w.send, w, begin), count);
    }
    p.copy(at(w.send, w, begin), at(w.receive, w, w.rank * w.count + begin), count);
    for (uint32_t i = 1; i < w.ranks; i++) {
      const uint32_t peer = (w.rank + w.ranks - i) % w.ranks;
      p.receive(connectionTo(w, peer), at(w.receive, w, peer * w.count + begin), count);
    }
  }
}

// Everybody's part p goes to rank p, which reduces them in rank order.
template <class P>
NCCLRUN_FN void directReduceScatter(P& p, const Work& w) {
  if (w.ranks == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const size_t step = lesser(turnChunk(w, w.count, w.blocks), p.slotElements());
  for (size_t begin = w.block * step; begin < w.count; begin += w.blocks * step) {
    const size_t count = lesser(step, w.count - begin);
    for (uint32_t i = 1; i < w.ranks; i++) {
      const uint32_t owner = (w.rank + i) % w.ranks;
      p.send(connectionTo(w, owner), at(w.send, w, owner * w.count + begin), count);
    }
    p.reduceAll(at(w.send, w, w.rank * w.count + begin), w.rank, at(w.receive, w, begin), false, count);
  }
}

// Part p of everybody's data goes to rank p. In place, what is sent and what is received lie at the same place: all is
// sent before anything is received.
template <class P>
NCCLRUN_FN void directAllToAll(P& p, const Work& w) {
  const auto part = [&](uint32_t rank, size_t begin) { return rank * w.count + begin; };
  const size_t step = lesser(turnChunk(w, w.count, w.blocks), p.slotElements());
  for (size_t begin = w.block * step; begin < w.count; begin += w.blocks * step) {
    const size_t count = lesser(step, w.count - begin);
    for (uint32_t i = 1; i < w.ranks; i++) {
      const uint32_t peer = (w.rank + i) % w.ranks;
      p.send(connectionTo(w, peer), at(w.send, w, part(peer, begin)), count);
    }
    p.copy(at(w.send, w, part(w.rank, begin)), at(w.receive, w, part(w.rank, begin)), count);
    for (uint32_t i = 1; i < w.ranks; i++) {
      const uint32_t peer = (w.rank + w.ranks - i) % w.ranks;
      p.receive(connectionTo(w, peer), at(w.receive, w, part(peer, begin)), count);
    }
  }
}

// Broadcast, reduce, gather and scatter: the root has a connection with everybody, the others with the root alone.
template <class P>
NCCLRUN_FN void directBroadcast(P& p, const Work& w) {
  if (w.ranks == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const size_t step = lesser(turnChunk(w, w.count, w.blocks), p.slotElements());
  for (size_t begin = w.block * step; begin < w.count; begin += w.blocks * step) {
    const size_t count = lesser(step, w.count - begin);
    if (w.rank != w.root) {
      p.receive(0, at(w.receive, w, begin), count);
      continue;
    }
    char* target = w.send == w.receive ? nullptr : at(w.receive, w, begin);
    p.merge(0, 0, at(w.send, w, begin), target, 0, w.ranks - 1, count);
  }
}

// In rank order.
template <class P>
NCCLRUN_FN void directReduce(P& p, const Work& w) {
  if (w.ranks == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const size_t step = lesser(turnChunk(w, w.count, w.blocks), p.slotElements());
  for (size_t begin = w.block * step; begin < w.count; begin += w.blocks * step) {
    const size_t count = lesser(step, w.count - begin);
    if (w.rank != w.root) {
      p.send(0, at(w.send, w, begin), count);
    } else {
      p.reduceAll(at(w.send, w, begin), w.rank, at(w.receive, w, begin), false, count);
    }
  }
}

template <class P>
NCCLRUN_FN void directGather(P& p, const Work& w) {
  const size_t step = lesser(turnChunk(w, w.count, w.blocks), p.slotElements());
  for (size_t begin = w.block * step; begin < w.count; begin += w.blocks * step) {
    const size_t count = lesser(step, w.count - begin);
    if (w.rank != w.root) {
      p.send(0, at(w.send, w, begin), count);
      continue;
    }
    p.copy(at(w.send, w, begin), at(w.receive, w, w.rank * w.count + begin), count);
    for (uint32_t i = 1; i < w.ranks; i++) {
      const uint32_t peer = (w.rank + i) % w.ranks;
      p.receive(connectionTo(w, peer), at(w.receive, w, peer * w.count + begin), count);
    }
  }
}

template <class P>
NCCLRUN_FN void directScatter(P& p, const Work& w) {
  const size_t step = lesser(turnChunk(w, w.count, w.blocks), p.slotElements());
  for (size_t begin = w.block * step; begin < w.count; begin += w.blocks * step) {
    const size_t count = lesser(step, w.count - begin);
    if (w.rank != w.root) {
      p.receive(0, at(w.receive, w, begin), count);
      continue;
    }
    for (uint32_t i = 1; i < w.ranks; i++) {
      const uint32_t peer = (w.rank + i) % w.ranks;
      p.send(connectionTo(w, peer), at(w.send, w, peer * w.count + begin), count);
    }
    p.copy(at(w.send, w, w.rank * w.count + begin), at(w.receive, w, begin), count);
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
