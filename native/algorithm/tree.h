// Tree: data is reduced on the way up to the root and spread on the way down, chunk after chunk, so that all levels
// work at once. Connections 0..children-1 lead to the children, the one after them, but at the root, to the parent.
#pragma once
#include "algorithm/work.h"

namespace ncclrun {

// The downward pass lags behind the upward pass by so many chunks, which are in flight to the root and back.
inline constexpr size_t kTreeLag = 2;

NCCLRUN_FN bool atTop(const Work& w) { return w.rank == w.root; }

// Chunk `begin` of the children's and our own data: to the parent, or at the root the result.
template <class P>
NCCLRUN_FN void treeUp(P& p, const Work& w, size_t begin, size_t count, bool sendDown) {
  const char* own = at(w.send, w, begin);
  if (!atTop(w)) {
    p.merge(0, w.children, own, nullptr, w.children, 1, count);
  } else {
    p.merge(0, w.children, own, at(w.receive, w, begin), 0, sendDown ? w.children : 0, count);
  }
}

// A chunk of the result from the parent to ourselves and the children.
template <class P>
NCCLRUN_FN void treeDown(P& p, const Work& w, size_t begin, size_t count) {
  if (!atTop(w)) p.merge(w.children, 1, nullptr, at(w.receive, w, begin), 0, w.children, count);
}

template <class P>
NCCLRUN_FN void treeAllReduce(P& p, const Work& w) {
  if (w.ranks == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  const size_t step = lesser(roundChunk(w, w.count, w.blocks), p.slotElements());
  const size_t round = w.blocks * step;
  const size_t first = w.block * step;
  const size_t rounds = first < w.count ? (w.count - first + round - 1) / round : 0;
  const auto count = [&](size_t begin) { return lesser(step, w.count - begin); };
  for (size_t i = 0; i < rounds + kTreeLag; i++) {
    if (i < rounds) treeUp(p, w, first + i * round, count(first + i * round), true);
    if (i < kTreeLag) continue;
    const size_t begin = first + (i - kTreeLag) * round;
    if (i - kTreeLag < rounds) treeDown(p, w, begin, count(begin));
  }
}

template <class P>
NCCLRUN_FN void treeReduce(P& p, const Work& w) {
  if (w.ranks == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  forEachStep(p, w, [&](size_t begin, size_t count) { treeUp(p, w, begin, count, false); });
}

template <class P>
NCCLRUN_FN void treeBroadcast(P& p, const Work& w) {
  if (w.ranks == 1) return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  forEachStep(p, w, [&](size_t begin, size_t count) {
    if (!atTop(w)) {
      treeDown(p, w, begin, count);
    } else {
      char* target = w.send == w.receive ? nullptr : at(w.receive, w, begin);
      p.merge(0, 0, at(w.send, w, begin), target, 0, w.children, count);
    }
  });
}

}  // namespace ncclrun
