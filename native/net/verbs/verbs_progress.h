// What both sides of a connection over verbs do whenever they are called.
#pragma once
#include "net/verbs/verbs_link.h"

namespace ncclrun::net {

// Polls, looks whether the connection can go on, and goes on with a move while its path has failed. poll: Status();
// move: Status(bool& resumed), as VerbsLink::advanceMove().
template <class Poll, class Move>
Status progressOf(VerbsLink& link, Poll poll, Move move) {
  NCCLRUN_TRY(link.failure());
  for (bool again = true; again;) {
    again = false;
    if (link.isMoving()) {
      NCCLRUN_TRY(move(again));
    } else {
      NCCLRUN_TRY(poll());
      NCCLRUN_TRY(link.health(again));
      again = again || link.isMoving();
    }
  }
  return {};
}

}  // namespace ncclrun::net
