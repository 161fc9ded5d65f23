// Collnet: the network reduces what one rank of every host has reduced for its host, and brings the result. So each
// host sends every byte once and receives it once, however many hosts there are. A rank waits for a result kCollnetLag
// chunks after it has given its part, if there are slots enough.
//
// Direct form: the ranks of a host divide the data among themselves as for a rail, and the ranks of one local index on
// all hosts send what they have reduced to the network. All hosts have equally many ranks. Connections 0..locals-2 lead
// to the other ranks of this host, the one after them to the network, which answers every step.
//
// Chain form: the ranks of a host are a chain, at whose end one rank, the block's master, sends to the network for its
// host. Hosts may have any numbers of ranks. The first connection leads to the next rank away from the network, if
// there is one (w.children is 1), the last one to the next rank towards it or, of the master, to the network.
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

// A rank that is farther from the network (w.root ranks lie between) waits longer for the result, which has to pass as
// many ranks on its way there as on its way back: so all ranks of the chain are at work at the same time. No rank waits
// for what waits for itself as long as no rank's lag exceeds that of the next one away from the network, or lies below
// it by as many chunks as there are slots.
template <class P>
NCCLRUN_FN void collnetChainAllReduce(P& p, const Work& w) {
  const uint32_t farther = 0, nearer = w.children;
  const bool isLast = w.children == 0;  // nobody is farther from the network
  const size_t round = size_t(w.blocks) * w.step;
  const size_t first = size_t(w.block) * w.step;
  const size_t lag = p.slots() > kCollnetLag ? (kCollnetLag + 2 * size_t(w.root)) * round : 0;
  for (size_t begin = first; begin < w.count + lag; begin += round) {
    const size_t given = within(begin, w.step, w.count);
    const char* const own = at(w.send, w, begin);
    if (isLast) {
      p.send(nearer, own, given);
    } else {
      p.receiveReduceSend(farther, own, nearer, given);
    }
    if (begin < first + lag) continue;
    const size_t reduced = begin - lag;
    const size_t count = within(reduced, w.step, w.count);
    if (isLast) {
      p.receive(nearer, at(w.receive, w, reduced), count);
    } else {
      p.receiveSend(nearer, farther, at(w.receive, w, reduced), count);
    }
  }
}

}  // namespace ncclrun
