// Direct: every rank has a connection to and from every other. Connection k belongs to the k-th other rank in ascending
// order. Blocks interleave their steps; on the host there is one block, because two ranks share one connection.
#pragma once
#include "algorithm/work.h"

namespace ncclrun {

// Number of the connection to `peer`.
NCCLRUN_FN uint32_t connectionTo(const Work& w, uint32_t peer) { return peer < w.rank ? peer : peer - 1; }

// A stretch of what is sent or received, in elements.
struct Stretch {
  size_t begin;
  size_t count;
};

// Number of the connection to the next rank.
NCCLRUN_FN uint32_t nextConnection(const Work& w) { return w.rank == w.ranks - 1 ? 0 : w.rank; }

// A rank counted beyond the last one, below twice their number: without a division.
NCCLRUN_FN uint32_t rankAt(const Work& w, uint32_t number) { return number < w.ranks ? number : number - w.ranks; }

// stretchFor(peer) to every other rank, beginning with the next, so that not all write to the same one at once.
template <class P, class StretchFor>
NCCLRUN_FN void sendToOthers(P& p, const Work& w, StretchFor&& stretchFor) {
  for (uint32_t i = 1; i < w.ranks; i++) {
    const uint32_t peer = rankAt(w, w.rank + i);
    const Stretch stretch = stretchFor(peer);
    p.send(connectionTo(w, peer), at(w.send, w, stretch.begin), stretch.count);
  }
}

// stretchOf(peer) from every other rank, in the order in which they send.
template <class P, class StretchOf>
NCCLRUN_FN void receiveFromOthers(P& p, const Work& w, StretchOf&& stretchOf) {
  for (uint32_t i = 1; i < w.ranks; i++) {
    const uint32_t peer = rankAt(w, w.rank + w.ranks - i);
    const Stretch stretch = stretchOf(peer);
    p.receive(connectionTo(w, peer), at(w.receive, w, stretch.begin), stretch.count);
  }
}

// Everybody sends everything to everybody and reduces it, in rank order: the same bits everywhere.
template <class P>
NCCLRUN_FN void directOneShotAllReduce(P& p, const Work& w) {
  if (isAlone<P>(w)) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  forEachStep(p, w, [&](size_t begin, size_t count) {
    p.sendAll(at(w.send, w, begin), count, nextConnection(w));
    if (w.send == w.receive) p.finishSends();
    p.reduceAll(at(w.send, w, begin), w.rank, at(w.receive, w, begin), false, count);
  });
}

// A chunk round has one chunk per rank. Its owner reduces it, in rank order, and sends the result to everybody.
template <class P>
NCCLRUN_FN void directTwoShotAllReduce(P& p, const Work& w) {
  const size_t n = w.ranks;
  if (isAlone<P>(w)) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  forEachRound(p, w, n, [&](size_t first, size_t span, size_t chunk) {
    const auto of = [&](uint32_t owner) {
      const size_t begin = first + owner * chunk;
      return Stretch{begin, within(begin, span, w.count)};
    };
    const Stretch own = of(w.rank);
    sendToOthers(p, w, of);
    p.reduceAll(at(w.send, w, own.begin), w.rank, at(w.receive, w, own.begin), true, own.count);
    receiveFromOthers(p, w, of);
  });
}

// Everybody's count elements to everybody. receive holds n × count.
template <class P>
NCCLRUN_FN void directAllGather(P& p, const Work& w) {
  forEachStep(p, w, [&](size_t begin, size_t count) {
    if (!isAlone<P>(w)) p.sendAll(at(w.send, w, begin), count, nextConnection(w));
    p.copy(at(w.send, w, begin), at(w.receive, w, w.rank * w.count + begin), count);
    receiveFromOthers(p, w, [&](uint32_t peer) { return Stretch{peer * w.count + begin, count}; });
  });
}

// Everybody's part p goes to rank p, which reduces them in rank order.
template <class P>
NCCLRUN_FN void directReduceScatter(P& p, const Work& w) {
  if (isAlone<P>(w)) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  forEachStep(p, w, [&](size_t begin, size_t count) {
    sendToOthers(p, w, [&](uint32_t owner) { return Stretch{owner * w.count + begin, count}; });
    p.reduceAll(at(w.send, w, w.rank * w.count + begin), w.rank, at(w.receive, w, begin), false, count);
  });
}

// Part p of everybody's data goes to rank p. In place, what is sent and what is received lie at the same place: all is
// sent before anything is received. Else a rank's own part is copied beside what it sends first: the link is what that
// waits for.
template <class P>
NCCLRUN_FN void directAllToAll(P& p, const Work& w) {
  if (isAlone<P>(w)) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const bool inPlace = w.send == w.receive;
  forEachStep(p, w, [&](size_t begin, size_t count) {
    const auto part = [&](uint32_t rank) { return rank * w.count + begin; };
    for (uint32_t i = 1; i < w.ranks; i++) {
      const uint32_t peer = rankAt(w, w.rank + i);
      char* const target = i > 1 || inPlace ? nullptr : at(w.receive, w, part(w.rank));
      p.sendAndCopy(connectionTo(w, peer), at(w.send, w, part(peer)), at(w.send, w, part(w.rank)), target, count);
    }
    if (inPlace) p.finishSends();
    receiveFromOthers(p, w, [&](uint32_t peer) { return Stretch{part(peer), count}; });
  });
}

// Broadcast, reduce, gather and scatter: the root has a connection with everybody, the others with the root alone.
template <class P>
NCCLRUN_FN void directBroadcast(P& p, const Work& w) {
  if (isAlone<P>(w)) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  forEachStep(p, w, [&](size_t begin, size_t count) {
    if (w.rank != w.root) {
      p.receive(0, at(w.receive, w, begin), count);
      return;
    }
    char* target = w.send == w.receive ? nullptr : at(w.receive, w, begin);
    p.merge(0, 0, at(w.send, w, begin), target, 0, w.ranks - 1, count);
  });
}

// In rank order.
template <class P>
NCCLRUN_FN void directReduce(P& p, const Work& w) {
  if (isAlone<P>(w)) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  forEachStep(p, w, [&](size_t begin, size_t count) {
    if (w.rank != w.root) {
      p.send(0, at(w.send, w, begin), count);
    } else {
      p.reduceAll(at(w.send, w, begin), w.rank, at(w.receive, w, begin), false, count);
    }
  });
}

template <class P>
NCCLRUN_FN void directGather(P& p, const Work& w) {
  forEachStep(p, w, [&](size_t begin, size_t count) {
    if (w.rank != w.root) {
      p.send(0, at(w.send, w, begin), count);
      return;
    }
    p.copy(at(w.send, w, begin), at(w.receive, w, w.rank * w.count + begin), count);
    receiveFromOthers(p, w, [&](uint32_t peer) { return Stretch{peer * w.count + begin, count}; });
  });
}

template <class P>
NCCLRUN_FN void directScatter(P& p, const Work& w) {
  forEachStep(p, w, [&](size_t begin, size_t count) {
    if (w.rank != w.root) {
      p.receive(0, at(w.receive, w, begin), count);
      return;
    }
    sendToOthers(p, w, [&](uint32_t peer) { return Stretch{peer * w.count + begin, count}; });
    p.copy(at(w.send, w, w.rank * w.count + begin), at(w.receive, w, begin), count);
  });
}

// Every rank signals every other: for a device on which signalling all costs no more than signalling one.
template <class P>
NCCLRUN_FN void flatBarrier(P& p, const Work& w) {
  if (w.ranks == 1) return;
  p.signalAll();
  p.awaitAll();
}

// Dissemination: after round k every rank has a signal, directly or not, from 2^(k+1) ranks. Connections: two per
// round, in round order.
template <class P>
NCCLRUN_FN void directBarrier(P& p, const Work& w) {
  uint32_t round = 0;
  for (uint32_t distance = 1; distance < w.ranks; distance *= 2, round++) {
    p.signal(round);
    p.await(round);
  }
}

}  // namespace ncclrun
