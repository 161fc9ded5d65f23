// Collnet: the ranks of a host divide the data among themselves as for a rail; what each has reduced for its host goes
// to the network, which reduces what the ranks of its local index on all hosts have sent, and brings the result. So
// each host sends every byte once and receives it once, however many hosts there are. All hosts have equally many
// ranks.
//
// Connections 0..locals-2 lead to the other ranks of this host, the one after them to the network, which answers every
// step. Its answer is waited for kCollnetLag chunks later, if there are slots enough.
#pragma once
#include "algorithm/rail.h"
#include "algorithm/work.h"

namespace ncclrun {

inline constexpr size_t kCollnetLag = 2;

template <class P>
NCCLRUN_FN void collnetAllReduce(P& p, const Work& w) {
  const uint32_t network = w.locals - 1;
  const size_t round = size_t(w.blocks) * w.locals * w.step;
  const size_t first = size_t(w.block) * w.locals * w.step;
  const size_t lag = p.slots() > kCollnetLag ? kCollnetLag * round : 0;
  const auto stretchOf = [&](size_t begin, uint32_t local) {
    const size_t own = begin + local * w.step;
    return Stretch{own, within(own, w.step, w.count)};
  };
  for (size_t begin = first; begin < w.count + lag; begin += round) {
    forEachInside(w, true, [&](uint32_t local) {
      const Stretch theirs = stretchOf(begin, local);
      p.send(connectionInside(w, local), at(w.send, w, theirs.begin), theirs.count);
    });
    const Stretch mine = stretchOf(begin, w.local);
    p.merge(0, network, at(w.send, w, mine.begin), nullptr, network, 1, mine.count);
    if (begin < first + lag) continue;
    const size_t reduced = begin - lag;
    const Stretch result = stretchOf(reduced, w.local);
    p.merge(network, 1, nullptr, at(w.receive, w, result.begin), 0, network, result.count);
    forEachInside(w, false, [&](uint32_t local) {
      const Stretch theirs = stretchOf(reduced, local);
      p.receive(connectionInside(w, local), at(w.receive, w, theirs.begin), theirs.count);
    });
  }
}

}  // namespace ncclrun
