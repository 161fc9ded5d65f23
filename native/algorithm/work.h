// What one block of one launch has to do, and the primitives it is written in.
//
// An algorithm is a template over Primitives P, compiled for the host (host/primitives.h) and for the GPU
// (cuda/kernels/primitives.cuh). A block has receiving and sending connections, numbered from 0. All counts are in
// elements and at most p.slotElements(); a step of no elements is left out at both ranks. Every primitive waits
// for the slots it needs, then moves, then posts or releases slots:
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
//   p.reduceAll(own, ownIndex, target, forward, n)             target = reduction of all connections' slots, in order,
//                                                              own as number `ownIndex` of them; and to every
//                                                              sending connection if forward
//   p.merge(from, receiveCount, own, target, to, sendCount, n) target (if not null) and slots [to, +sendCount) =
//                                                              reduction of the slots [from, +receiveCount) and,
//                                                              last, own (if not null)
//   p.finishSends()                                            sources of sends may be overwritten: until then they may
//                                                              still be read
//   p.signal(to), p.await(from)                                one step without payload
//   p.signalAll(), p.awaitAll()                                the same, of all connections
//
// In a collective that reduces, `source` and `own` are the user's contribution, which the primitives multiply where the
// operator is a pre-multiplied sum; what is reduced into a `target` is the result, which they divide where the operator
// is an average of integers.
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
  size_t chunk;     // elements; the variant's chunk
  size_t grain;     // elements; chunks are multiples of it
  size_t step;      // elements of a step of forEachStep(), or of the chunk of a launch of one round; stepOf() and
                    // singleStepChunk(); the same for all blocks
  bool isLL;        // protocol LL, else Simple
  uint32_t block;   // 0..blocks-1
  uint32_t blocks;  // channels of the variant
  uint32_t rank;
  uint32_t ranks;
  uint32_t ringIndex;    // of this rank in the block's ring
  uint32_t root;         // of the call; of an all-reduce by a tree: where it ends; in a chain: ranks between this one
                         // and the network
  uint32_t children;     // in a tree; in a chain: 1 if there is another rank behind this one
  const uint32_t* ring;  // ranks in ring order; null for variants that need none
  uint32_t hosts;        // of rails; all have `locals` ranks
  uint32_t host;         // this rank's
  uint32_t locals;
  uint32_t local;          // this rank's index among those of its host
  const uint32_t* byHost;  // ranks, [host × locals + local]
};

NCCLRUN_FN const char* at(const char* base, const Work& w, size_t element) { return base + element * w.elementBytes; }
NCCLRUN_FN char* at(char* base, const Work& w, size_t element) { return base + element * w.elementBytes; }

// True if the rank has no peers. Single-step launches have no such case.
template <class P>
NCCLRUN_FN bool isAlone(const Work& w) {
  return !P::kSingleStep && w.ranks == 1;
}

NCCLRUN_FN size_t lesser(size_t a, size_t b) { return a < b ? a : b; }

// Elements of [begin, begin + span) that lie below `end`.
NCCLRUN_FN size_t within(size_t begin, size_t span, size_t end) { return begin >= end ? 0 : lesser(span, end - begin); }

// The chunk of one round: the variant's, or an equal part of what is left if that is less, rounded up to the grain.
// Under protocol LL only the last, smaller chunk is rounded.
NCCLRUN_FN size_t roundChunk(const Work& w, size_t left, size_t parts) {
  if (w.isLL && left / parts >= w.chunk) return w.chunk;
  const size_t part = lesser(w.chunk, (left + parts - 1) / parts);
  return (part + w.grain - 1) / w.grain * w.grain;
}

// Splits `all` elements into parts of at most `max`, with no last part that is much smaller and no block that has one
// part more than others. Parts are multiples of the grain.
NCCLRUN_FN size_t evenPart(const Work& w, size_t all, size_t max) {
  if (all <= max) return max;
  const size_t parts = (all + max - 1) / max;
  const size_t part = (all + parts - 1) / parts;
  return lesser(max, (part + w.grain - 1) / w.grain * w.grain);
}

// The step into which shares are split, `parts` of each block; it fits the smallest slot of a block. The host computes
// it: the divisions would take as long as a small message.
NCCLRUN_FN size_t stepOf(const Work& w, size_t slotElements, size_t parts) {
  const size_t shares = w.blocks * parts;
  return evenPart(w, (w.count + shares - 1) / shares, lesser(roundChunk(w, w.count, shares), slotElements));
}

// The chunk if the work fits a single-step launch, in which every block sends at most one step of each of `parts`
// shares to each peer; 0 if it does not. There P::kSingleStep may hold, which omits the code for longer work.
NCCLRUN_FN size_t singleStepChunk(const Work& w, size_t slotElements, size_t parts) {
  const size_t chunk = parts == 1 ? stepOf(w, slotElements, 1) : roundChunk(w, w.count, w.blocks * parts);
  return chunk <= slotElements && chunk * w.blocks * parts >= w.count ? chunk : 0;
}

// Iterates over the block's share of the data in steps that fit a slot: step(begin, count). Shares are contiguous: if
// the blocks interleaved their steps, they would all enter a new memory page at once.
template <class P, class Step>
NCCLRUN_FN void forEachStep(const P&, const Work& w, Step&& step) {
  const size_t max = w.step;
  if constexpr (P::kSingleStep) {
    if (w.block * max < w.count) step(w.block * max, lesser(max, w.count - w.block * max));
    return;
  }
  size_t first = w.block, steps = 1;  // the case of a small message, without divisions
  if (w.count > w.blocks * max) {
    const size_t all = (w.count + max - 1) / max;
    steps = all / w.blocks;
    const size_t left = all - steps * w.blocks;
    first = w.block * steps + lesser(w.block, left);
    steps += w.block < left ? 1 : 0;
  }
  for (; steps > 0 && first * max < w.count; steps--, first++) {
    step(first * max, lesser(max, w.count - first * max));
  }
}

// Iterates over the data in chunk rounds that give every block `parts` chunks, which shrink with the remaining data.
// Each chunk is split into pieces of pieceOf(chunk) elements: step(begin, span, chunk) covers [begin, begin + span) of
// the block's first chunk of the round, and the others lie `chunk` elements apart. All may reach beyond the data:
// within() limits them.
template <class PieceOf, class Step>
NCCLRUN_FN void forEachPiece(const Work& w, size_t parts, PieceOf&& pieceOf, Step&& step) {
  size_t chunk = 0;
  for (size_t round = 0; round < w.count; round += w.blocks * parts * chunk) {
    chunk = roundChunk(w, w.count - round, w.blocks * parts);
    const size_t begin = round + w.block * parts * chunk;
    const size_t piece = pieceOf(chunk);
    for (size_t done = 0; done < chunk; done += piece) step(begin + done, lesser(piece, chunk - done), chunk);
  }
}
// The same in pieces that fit a slot.
template <class P, class Step>
NCCLRUN_FN void forEachRound(const P& p, const Work& w, size_t parts, Step&& step) {
  if constexpr (P::kSingleStep) return step(w.block * parts * w.step, w.step, w.step);
  forEachPiece(
      w, parts, [&](size_t chunk) { return evenPart(w, chunk, p.slotElements()); }, step);
}

}  // namespace ncclrun
