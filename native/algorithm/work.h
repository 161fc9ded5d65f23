// What one block of one launch has to do, and the primitives it is written in.
//
// An algorithm is a template over Primitives P, compiled for the host (host/primitives.h) and for the GPU
// (cuda/kernels/primitives.cuh). A block has receiving and sending connections, numbered from 0. All counts are in
// elements and at most p.slotElements(); a step of no elements is left out, by both ends alike. Every primitive waits
// for the slots it needs, then moves, then hands slots on:
//
//   p.copy(source, target, n)                                  target = source
//   p.copyAll(source, target, n, block, blocks)                target = source, of a single rank, shared by the blocks
//   p.send(to, source, n)                                      slot[to] = source
//   p.sendAll(source, n, first)                                slots of all sending connections = source, beginning
//                                                              with `first` where one comes after the other
//   p.sendAndCopy(to, source, own, target, n)                  slot[to] = source; target (if not null) = own
//   p.copySend(source, target, to, n)                          target = slot[to] = source
//   p.receive(from, target, n)                                 target = slot[from]
//   p.receiveSend(from, to, target, n)                         target = slot[to] = slot[from]
//   p.receiveReduceSend(from, own, to, n)                      slot[to] = slot[from] op own
//   p.receiveReduceCopy(from, own, target, n)                  target = slot[from] op own
//   p.receiveReduceCopySend(from, own, target, to, n)          target = slot[to] = slot[from] op own
//   p.reduceAll(own, place, target, forward, n)                target = fold of all connections' slots, in order, own
//   at `place`;
//                                                              and to every sending connection if forward
//   p.merge(from, froms, own, target, to, tos, n)              target (if not null) and slots [to, +tos) = fold of the
//                                                              slots [from, +froms) and, last, own (if not null)
//   p.sent()                                                   what was only sent may be overwritten: until then it may
//                                                              still be read
//   p.signal(to), p.await(from)                                one step without payload
//   p.signalAll(), p.awaitAll()                                the same, of all connections
//
// In a collective that reduces, `source` and `own` are the user's contribution, which the primitives multiply where the
// operator is a pre-multiplied sum; what is folded into a `target` is the result, which they divide where the operator
// is an average of whole numbers.
//
// After an abort all of them return at once and do nothing.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/function.h"

namespace ncclrun {

struct Work {
  const char* send;
  char* receive;
  size_t count;  // elements, as the user gave it
  size_t elementBytes;
  size_t chunk;     // elements; the form's chunk
  size_t grain;     // elements; chunks are multiples of it
  size_t step;      // elements of a step of forEachStep(), or of the chunk of a launch of one turn; stepOf() and
                    // chunkOfOneTurn() tell; the same for all blocks
  bool lowLatency;  // protocol LL, else Simple
  uint32_t block;   // 0..blocks-1
  uint32_t blocks;  // channels of the form
  uint32_t rank;
  uint32_t ranks;
  uint32_t place;        // of this rank in the block's ring
  uint32_t root;         // of the call; of an all-reduce by a tree: where it ends
  uint32_t children;     // in a tree
  const uint32_t* ring;  // ranks in ring order; null for forms that need none
};

NCCLRUN_FN const char* at(const char* base, const Work& w, size_t element) { return base + element * w.elementBytes; }
NCCLRUN_FN char* at(char* base, const Work& w, size_t element) { return base + element * w.elementBytes; }

// A single rank has no turns.
template <class P>
NCCLRUN_FN bool isAlone(const Work& w) {
  return !P::kOneTurn && w.ranks == 1;
}

NCCLRUN_FN size_t lesser(size_t a, size_t b) { return a < b ? a : b; }

// Elements of [begin, begin + span) that lie below `end`.
NCCLRUN_FN size_t within(size_t begin, size_t span, size_t end) { return begin >= end ? 0 : lesser(span, end - begin); }

// The chunk of one turn: the form's, or an equal part of what is left if that is less, rounded up to the grain. Under
// protocol LL only the last, smaller one is rounded.
NCCLRUN_FN size_t turnChunk(const Work& w, size_t left, size_t parts) {
  if (w.lowLatency && left / parts >= w.chunk) return w.chunk;
  const size_t part = lesser(w.chunk, (left + parts - 1) / parts);
  return (part + w.grain - 1) / w.grain * w.grain;
}

// What `all` elements are cut into: at most so many, and no last part that is much smaller, nor blocks that have one
// more than others. Parts are multiples of the grain.
NCCLRUN_FN size_t evenPart(const Work& w, size_t all, size_t most) {
  if (all <= most) return most;
  const size_t parts = (all + most - 1) / most;
  const size_t part = (all + parts - 1) / parts;
  return lesser(most, (part + w.grain - 1) / w.grain * w.grain);
}

// What shares are cut into, of which each fits the smallest slot that a block has. Not a block's own business: it takes
// divisions, and small messages no longer than these.
NCCLRUN_FN size_t stepOf(const Work& w, size_t slotElements) {
  return evenPart(w, (w.count + w.blocks - 1) / w.blocks, lesser(turnChunk(w, w.count, w.blocks), slotElements));
}

// Some work is one turn: every block sends at most one step of each of `parts` shares to each peer. There P::kOneTurn
// may hold, which leaves out of the algorithms what longer work needs. 0: it takes more.
NCCLRUN_FN size_t chunkOfOneTurn(const Work& w, size_t slotElements, size_t parts) {
  const size_t chunk = parts == 1 ? stepOf(w, slotElements) : turnChunk(w, w.count, w.blocks * parts);
  return chunk <= slotElements && chunk * w.blocks * parts >= w.count ? chunk : 0;
}

// The block's share of the data, in steps that a slot holds: step(begin, count). Shares lie one behind the other: would
// the blocks go through the data side by side, they would all come to a new page of memory at once.
template <class P, class Step>
NCCLRUN_FN void forEachStep(const P&, const Work& w, Step&& step) {
  const size_t most = w.step;
  if constexpr (P::kOneTurn) {
    if (w.block * most < w.count) step(w.block * most, lesser(most, w.count - w.block * most));
    return;
  }
  size_t first = w.block, steps = 1;  // what a small message comes to, without divisions
  if (w.count > w.blocks * most) {
    const size_t all = (w.count + most - 1) / most;
    steps = all / w.blocks;
    const size_t left = all - steps * w.blocks;
    first = w.block * steps + lesser(w.block, left);
    steps += w.block < left ? 1 : 0;
  }
  for (; steps > 0 && first * most < w.count; steps--, first++) {
    step(first * most, lesser(most, w.count - first * most));
  }
}

// The data in turns that give every block `parts` chunks, which shrink with what is left; each chunk is cut into pieces
// of pieceOf(chunk) elements: step(begin, span, chunk) is about [begin, begin + span) of the block's first chunk of the
// turn, and the others lie `chunk` elements apart. All may reach beyond the data: within() says how far.
template <class PieceOf, class Step>
NCCLRUN_FN void forEachPiece(const Work& w, size_t parts, PieceOf&& pieceOf, Step&& step) {
  size_t chunk = 0;
  for (size_t turn = 0; turn < w.count; turn += w.blocks * parts * chunk) {
    chunk = turnChunk(w, w.count - turn, w.blocks * parts);
    const size_t begin = turn + w.block * parts * chunk;
    const size_t piece = pieceOf(chunk);
    for (size_t done = 0; done < chunk; done += piece) step(begin + done, lesser(piece, chunk - done), chunk);
  }
}
// In pieces that a slot holds.
template <class P, class Step>
NCCLRUN_FN void forEachTurn(const P& p, const Work& w, size_t parts, Step&& step) {
  if constexpr (P::kOneTurn) return step(w.block * parts * w.step, w.step, w.step);
  forEachPiece(
      w, parts, [&](size_t chunk) { return evenPart(w, chunk, p.slotElements()); }, step);
}

}  // namespace ncclrun
