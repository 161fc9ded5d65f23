// Ring: connection 0 receives from the previous rank and sends to the next. The data is split into chunk rounds; each
// gives every channel one chunk per rank (all-reduce) or one chunk (the others). A chunk larger than a slot goes round
// slot by slot; where every rank waits for what its neighbour does at the same time, in pairs of slots, each step of
// one before the same step of the other: what a rank waits for was sent a step ago.
#pragma once
#include "algorithm/work.h"

namespace ncclrun {

// The elements of a ring step: `span` elements of every chunk of the round.
struct RingPiece {
  const Work& w;
  size_t begin;  // of the first chunk's part
  size_t span;
  size_t chunk;  // distance of one rank's chunk to the next one's; 0: each rank has all of it

  // Begin of the chunk that passes this rank in step s, counted back from its own index.
  NCCLRUN_FN size_t beginOf(size_t s) const { return begin + (w.ringIndex + w.ranks - s) % w.ranks * chunk; }
  NCCLRUN_FN size_t countOf(size_t s) const { return within(beginOf(s), span, w.count); }
  // The rank whose chunk that is.
  NCCLRUN_FN size_t rankOf(size_t s) const { return w.ring[(w.ringIndex + w.ranks - s) % w.ranks]; }
};

// steps(each): the steps of a ring for two slots' worth of every chunk; each(step) calls step(piece) for both. A rank
// has three slots under way to its neighbour then: with fewer of them there is one piece at a time.
template <class P, class Steps>
NCCLRUN_FN void forEachPair(const P& p, const Work& w, bool perRank, Steps&& steps) {
  const size_t slot = p.slotElements();
  const auto pair = [&](size_t) { return (p.slots() > 2 ? 2 : 1) * slot; };
  forEachPiece(w, perRank ? w.ranks : 1, pair, [&](size_t begin, size_t span, size_t chunk) {
    steps([&](auto&& step) {
      for (size_t done = 0; done < span; done += slot) {
        step(RingPiece{w, begin + done, lesser(slot, span - done), perRank ? chunk : 0});
      }
    });
  });
}

// Reduce-scatter in n-1 steps, then all-gather in n-1 steps. Every chunk is reduced along one path, so all ranks get
// the same bits.
template <class P>
NCCLRUN_FN void ringAllReduce(P& p, const Work& w) {
  const size_t n = w.ranks;
  if (n == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const auto from = [&](const RingPiece& piece, size_t s) { return at(w.send, w, piece.beginOf(s)); };
  const auto to = [&](const RingPiece& piece, size_t s) { return at(w.receive, w, piece.beginOf(s)); };
  forEachPair(p, w, true, [&](auto&& each) {
    each([&](const RingPiece& piece) { p.send(0, from(piece, 1), piece.countOf(1)); });
    for (size_t s = 2; s < n; s++)
      each([&](const RingPiece& piece) { p.receiveReduceSend(0, from(piece, s), 0, piece.countOf(s)); });
    each(
        [&](const RingPiece& piece) { p.receiveReduceCopySend(0, from(piece, n), to(piece, n), 0, piece.countOf(n)); });
    for (size_t s = 1; s + 1 < n; s++)
      each([&](const RingPiece& piece) { p.receiveSend(0, 0, to(piece, s), piece.countOf(s)); });
    each([&](const RingPiece& piece) { p.receive(0, to(piece, n - 1), piece.countOf(n - 1)); });
  });
}

// Each rank's count elements go once round. receive holds n × count.
template <class P>
NCCLRUN_FN void ringAllGather(P& p, const Work& w) {
  const size_t n = w.ranks;
  if (n == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const auto to = [&](const RingPiece& piece, size_t s) {
    return at(w.receive, w, piece.rankOf(s) * w.count + piece.begin);
  };
  forEachPair(p, w, false, [&](auto&& each) {
    each([&](const RingPiece& piece) { p.copySend(at(w.send, w, piece.begin), to(piece, 0), 0, piece.countOf(0)); });
    for (size_t s = 1; s + 1 < n; s++)
      each([&](const RingPiece& piece) { p.receiveSend(0, 0, to(piece, s), piece.countOf(s)); });
    each([&](const RingPiece& piece) { p.receive(0, to(piece, n - 1), piece.countOf(n - 1)); });
  });
}

// send holds n × count; each rank receives its count elements reduced.
template <class P>
NCCLRUN_FN void ringReduceScatter(P& p, const Work& w) {
  const size_t n = w.ranks;
  if (n == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const auto from = [&](const RingPiece& piece, size_t s) {
    return at(w.send, w, piece.rankOf(s) * w.count + piece.begin);
  };
  forEachPair(p, w, false, [&](auto&& each) {
    each([&](const RingPiece& piece) { p.send(0, from(piece, 1), piece.countOf(1)); });
    for (size_t s = 2; s < n; s++)
      each([&](const RingPiece& piece) { p.receiveReduceSend(0, from(piece, s), 0, piece.countOf(s)); });
    each([&](const RingPiece& piece) {
      p.receiveReduceCopy(0, from(piece, 0), at(w.receive, w, piece.begin), piece.countOf(0));
    });
  });
}

// From the root along the ring to the rank before it.
template <class P>
NCCLRUN_FN void ringBroadcast(P& p, const Work& w) {
  const size_t n = w.ranks;
  if (n == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const bool first = w.rank == w.root;
  const bool last = w.ring[(w.ringIndex + 1) % n] == w.root;
  forEachRound(p, w, 1, [&](size_t begin, size_t span, size_t) {
    const size_t count = within(begin, span, w.count);
    if (first) {
      p.copySend(at(w.send, w, begin), at(w.receive, w, begin), 0, count);
    } else if (last) {
      p.receive(0, at(w.receive, w, begin), count);
    } else {
      p.receiveSend(0, 0, at(w.receive, w, begin), count);
    }
  });
}

// From the rank after the root along the ring to the root, which alone has the result.
template <class P>
NCCLRUN_FN void ringReduce(P& p, const Work& w) {
  const size_t n = w.ranks;
  if (n == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const bool last = w.rank == w.root;
  const bool first = w.ring[(w.ringIndex + n - 1) % n] == w.root;
  forEachRound(p, w, 1, [&](size_t begin, size_t span, size_t) {
    const size_t count = within(begin, span, w.count);
    if (first) {
      p.send(0, at(w.send, w, begin), count);
    } else if (last) {
      p.receiveReduceCopy(0, at(w.send, w, begin), at(w.receive, w, begin), count);
    } else {
      p.receiveReduceSend(0, at(w.send, w, begin), 0, count);
    }
  });
}

// A signal that went n-1 times to the next rank has passed everybody.
template <class P>
NCCLRUN_FN void ringBarrier(P& p, const Work& w) {
  for (uint32_t step = 1; step < w.ranks; step++) {
    p.signal(0);
    p.await(0);
  }
}

}  // namespace ncclrun
