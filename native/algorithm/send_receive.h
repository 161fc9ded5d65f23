// Send and receive: blocks for one peer and direction, a connection each; exchanges have both.
#pragma once
#include "algorithm/work.h"

namespace ncclrun {

template <class P>
NCCLRUN_FN void sendTo(P& p, const Work& w) {
  forEachStep(p, w, [&](size_t begin, size_t count) { p.send(0, at(w.send, w, begin), count); });
}

template <class P>
NCCLRUN_FN void receiveFrom(P& p, const Work& w) {
  forEachStep(p, w, [&](size_t begin, size_t count) { p.receive(0, at(w.receive, w, begin), count); });
}

// What comes replaces what is sent.
template <class P>
NCCLRUN_FN void exchangeInPlace(P& p, const Work& w) {
  forEachStep(p, w, [&](size_t begin, size_t count) {
    p.send(0, at(w.send, w, begin), count);
    p.finishSends();
    p.receive(0, at(w.receive, w, begin), count);
  });
}

}  // namespace ncclrun
