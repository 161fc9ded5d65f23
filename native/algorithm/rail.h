// Rail: the ranks of a host divide the data among themselves, and each exchanges its part with the ranks of its own
// local index on the other hosts (a rail). So the network carries every byte once for each two hosts, on all rails at
// once, however many ranks a host has. All hosts have equally many ranks.
//
// Connections 0..locals-2 lead to the other ranks of this host, those behind them to this rank's rail on the other
// hosts; both ascend. What comes from another host is waited for one chunk later than it was sent, if there are slots
// enough: a rank sends two steps to its rail before it reads the first one that came.
#pragma once
#include "algorithm/direct.h"
#include "algorithm/work.h"

namespace ncclrun {

NCCLRUN_FN uint32_t connectionInside(const Work& w, uint32_t local) { return local < w.local ? local : local - 1; }
NCCLRUN_FN uint32_t connectionBetween(const Work& w, uint32_t host) {
  return w.locals - 1 + (host < w.host ? host : host - 1);
}

// What a step has of each rank's count elements: [begin, begin + count).
struct PartOfStep {
  const Work& w;
  size_t begin, count;

  NCCLRUN_FN Stretch operator()(uint32_t host, uint32_t local) const {
    return {w.byHost[host * w.locals + local] * w.count + begin, count};
  }
};

// with(local) for every other rank of this host: in the order of sending, or that in which the others send.
template <class With>
NCCLRUN_FN void forEachInside(const Work& w, bool sends, With&& with) {
  for (uint32_t i = 1; i < w.locals; i++) {
    const uint32_t local = w.local + (sends ? i : w.locals - i);
    with(local < w.locals ? local : local - w.locals);
  }
}

// with(host) for every other host. All ranks of a host have the same order.
template <class With>
NCCLRUN_FN void forEachOtherHost(const Work& w, With&& with) {
  for (uint32_t i = 1; i < w.hosts; i++) with(w.host + i < w.hosts ? w.host + i : w.host + i - w.hosts);
}

// Of what the rails reduce, all contributions of this host: stretchOf(host, local) is the part that ends at that rank.
// Step by step, because a rank may have few slots for its neighbours.
template <class P, class StretchOf>
NCCLRUN_FN void railSend(P& p, const Work& w, StretchOf&& stretchOf) {
  forEachOtherHost(w, [&](uint32_t host) {
    forEachInside(w, true, [&](uint32_t local) {
      const Stretch theirs = stretchOf(host, local);
      p.send(connectionInside(w, local), at(w.send, w, theirs.begin), theirs.count);
    });
    const Stretch mine = stretchOf(host, w.local);
    p.merge(0, w.locals - 1, at(w.send, w, mine.begin), nullptr, connectionBetween(w, host), 1, mine.count);
  });
}

// Reduces the part that ends here: what the ranks of this host and of the rail have, into `target`, and to all of them
// if `forward`.
template <class P, class StretchOf>
NCCLRUN_FN void railReduce(P& p, const Work& w, StretchOf&& stretchOf, char* target, bool forward) {
  forEachInside(w, true, [&](uint32_t local) {
    const Stretch theirs = stretchOf(w.host, local);
    p.send(connectionInside(w, local), at(w.send, w, theirs.begin), theirs.count);
  });
  const Stretch mine = stretchOf(w.host, w.local);
  const uint32_t all = w.locals - 1 + w.hosts - 1;
  p.merge(0, all, at(w.send, w, mine.begin), target, 0, forward ? all : 0, mine.count);
}

// The results of this host's other ranks.
template <class P, class StretchOf>
NCCLRUN_FN void receiveInside(P& p, const Work& w, uint32_t host, StretchOf&& stretchOf) {
  forEachInside(w, false, [&](uint32_t local) {
    const Stretch theirs = stretchOf(host, local);
    p.receive(connectionInside(w, local), at(w.receive, w, theirs.begin), theirs.count);
  });
}

// The results of the other hosts: each rank receives its rail's and passes them on to the ranks of this host.
template <class P, class StretchOf>
NCCLRUN_FN void railReceive(P& p, const Work& w, StretchOf&& stretchOf) {
  forEachOtherHost(w, [&](uint32_t host) {
    const Stretch mine = stretchOf(host, w.local);
    p.merge(connectionBetween(w, host), 1, nullptr, at(w.receive, w, mine.begin), 0, w.locals - 1, mine.count);
    receiveInside(p, w, host, stretchOf);
  });
}

// A chunk round has one chunk per rank, which reduces it and sends the result to its host and its rail.
template <class P>
NCCLRUN_FN void railAllReduce(P& p, const Work& w) {
  const size_t round = size_t(w.blocks) * w.ranks * w.step;
  const size_t first = size_t(w.block) * w.ranks * w.step;
  const size_t lag = p.slots() > 3 ? round : 0;
  const auto ofRound = [&](size_t begin) {
    return [&w, begin](uint32_t host, uint32_t local) {
      const size_t own = begin + (host * w.locals + local) * w.step;
      return Stretch{own, within(own, w.step, w.count)};
    };
  };
  for (size_t begin = first; begin < w.count + 2 * lag; begin += round) {
    railSend(p, w, ofRound(begin));
    if (begin < first + lag) continue;
    const auto reduced = ofRound(begin - lag);
    railReduce(p, w, reduced, at(w.receive, w, reduced(w.host, w.local).begin), true);
    receiveInside(p, w, w.host, reduced);
    if (begin >= first + 2 * lag) railReceive(p, w, ofRound(begin - 2 * lag));
  }
}

// Iterates over the block's share in steps: now(begin, count), and later(begin, count) a step later.
template <class P, class Now, class Later>
NCCLRUN_FN void forEachStepTwice(const P& p, const Work& w, Now&& now, Later&& later) {
  Stretch before{0, 0};
  forEachStep(p, w, [&](size_t begin, size_t count) {
    now(begin, count);
    if (p.slots() <= 3) return later(begin, count);
    if (before.count > 0) later(before.begin, before.count);
    before = {begin, count};
  });
  if (before.count > 0) later(before.begin, before.count);
}

// Everybody's part r goes to rank r, which reduces what the ranks of its host have and what the hosts have reduced.
template <class P>
NCCLRUN_FN void railReduceScatter(P& p, const Work& w) {
  forEachStepTwice(
      p, w,
      [&](size_t begin, size_t count) {
        railSend(p, w, PartOfStep{w, begin, count});
      },
      [&](size_t begin, size_t count) {
        railReduce(p, w, PartOfStep{w, begin, count}, at(w.receive, w, begin), false);
      });
}

// Everybody's count elements to everybody: first to the ranks of its host and its rail, which pass them on.
template <class P>
NCCLRUN_FN void railAllGather(P& p, const Work& w) {
  forEachStepTwice(
      p, w,
      [&](size_t begin, size_t count) {
        p.sendAll(at(w.send, w, begin), count, w.local % (w.locals + w.hosts - 2));
        p.copy(at(w.send, w, begin), at(w.receive, w, w.rank * w.count + begin), count);
        receiveInside(p, w, w.host, PartOfStep{w, begin, count});
      },
      [&](size_t begin, size_t count) {
        railReceive(p, w, PartOfStep{w, begin, count});
      });
}

}  // namespace ncclrun
