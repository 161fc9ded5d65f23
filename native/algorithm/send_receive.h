// Send and receive: one block per peer and direction, one connection.
#pragma once
#include "algorithm/work.h"

namespace ncclrun {

template <class P>
NCCLRUN_FN void sendTo(P& p, const Work& w) {
  const size_t slot = lesser(p.slotElements(), w.chunk);
  for (size_t begin = 0; begin < w.count; begin += slot) p.send(0, at(w.send, w, begin), lesser(slot, w.count - begin));
}

template <class P>
NCCLRUN_FN void receiveFrom(P& p, const Work& w) {
  const size_t slot = lesser(p.slotElements(), w.chunk);
  for (size_t begin = 0; begin < w.count; begin += slot)
    p.receive(0, at(w.receive, w, begin), lesser(slot, w.count - begin));
}

}  // namespace ncclrun
