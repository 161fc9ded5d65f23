// Ring: connection 0 receives from the previous rank and sends to the next. The data is cut into turns; each turn gives
// every channel one chunk per rank (all-reduce) or one chunk (the others). A chunk larger than a slot goes round slot
// by slot.
#pragma once
#include "algorithm/work.h"

namespace ncclrun {

// Reduce-scatter in n-1 steps, then all-gather in n-1 steps. Every chunk is reduced along one path, so all ranks get
// the same bits.
template <class P>
NCCLRUN_FN void ringAllReduce(P& p, const Work& w) {
  const size_t n = w.ranks;
  if (n == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  forEachTurn(p, w, n, [&](size_t first, size_t span, size_t chunk) {
    // Chunk that passes this rank in step s, counted back from its own place.
    auto begin = [&](size_t s) { return first + (w.place + n - s) % n * chunk; };
    auto count = [&](size_t s) { return within(begin(s), span, w.count); };
    auto from = [&](size_t s) { return at(w.send, w, begin(s)); };
    auto to = [&](size_t s) { return at(w.receive, w, begin(s)); };
    p.send(0, from(1), count(1));
    for (size_t s = 2; s < n; s++) p.receiveReduceSend(0, from(s), 0, count(s));
    p.receiveReduceCopySend(0, from(n), to(n), 0, count(n));
    for (size_t s = 1; s + 1 < n; s++) p.receiveSend(0, 0, to(s), count(s));
    p.receive(0, to(n - 1), count(n - 1));
  });
}

// Each rank's count elements go once round. receive holds n × count.
template <class P>
NCCLRUN_FN void ringAllGather(P& p, const Work& w) {
  const size_t n = w.ranks;
  if (n == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  forEachTurn(p, w, 1, [&](size_t begin, size_t span, size_t) {
    const size_t count = within(begin, span, w.count);
    auto to = [&](size_t s) { return at(w.receive, w, w.ring[(w.place + n - s) % n] * w.count + begin); };
    p.copySend(at(w.send, w, begin), to(0), 0, count);
    for (size_t s = 1; s + 1 < n; s++) p.receiveSend(0, 0, to(s), count);
    p.receive(0, to(n - 1), count);
  });
}

// send holds n × count; each rank receives its count elements reduced.
template <class P>
NCCLRUN_FN void ringReduceScatter(P& p, const Work& w) {
  const size_t n = w.ranks;
  if (n == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  forEachTurn(p, w, 1, [&](size_t begin, size_t span, size_t) {
    const size_t count = within(begin, span, w.count);
    auto from = [&](size_t s) { return at(w.send, w, w.ring[(w.place + n - s) % n] * w.count + begin); };
    p.send(0, from(1), count);
    for (size_t s = 2; s < n; s++) p.receiveReduceSend(0, from(s), 0, count);
    p.receiveReduceCopy(0, from(0), at(w.receive, w, begin), count);
  });
}

// From the root along the ring to the rank before it.
template <class P>
NCCLRUN_FN void ringBroadcast(P& p, const Work& w) {
  const size_t n = w.ranks;
  if (n == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const bool first = w.rank == w.root;
  const bool last = w.ring[(w.place + 1) % n] == w.root;
  forEachTurn(p, w, 1, [&](size_t begin, size_t span, size_t) {
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
  const bool first = w.ring[(w.place + n - 1) % n] == w.root;
  forEachTurn(p, w, 1, [&](size_t begin, size_t span, size_t) {
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
