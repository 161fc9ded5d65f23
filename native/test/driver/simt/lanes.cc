// What lanes of a warp do together.
#include <algorithm>
#include <atomic>
#include <span>

#include "simt/block.h"

namespace simt {
namespace {

// How long lanes that have come to a place wait for others of the warp that are still under way.
constexpr uint64_t kTurnsForOthers = 12;

uint32_t lineOf(const Thread& thread) { return thread.number / kLanesOfLine; }
uint32_t maskOfLine(const Thread& thread) { return 0xffu << thread.number % kLanes / kLanesOfLine * kLanesOfLine; }

// The second word of the last lane is the line's flag: who finds it there finds the rest.
void access(const LinePart& part) {
  std::atomic_ref a(part.address[0]), b(part.address[1]);
  if (part.stores) {
    a.store(*part.a, std::memory_order_relaxed);
    b.store(*part.b, std::memory_order_release);
  } else {
    *part.b = b.load(std::memory_order_acquire);
    *part.a = a.load(std::memory_order_relaxed);
  }
}

}  // namespace

bool Block::syncLanes(Thread& thread, uint32_t mask, bool says) {
  thread.inStep = false;
  thread.steps = 0;
  const uint32_t own = thread.number % kLanes;
  if ((mask >> own & 1) == 0) fail(&thread, "waits for lanes of which it is none");
  thread.mask = mask;
  thread.says = says;
  bool any = says;
  for (uint32_t i = 0; i < kLanes; i++) {
    if (i == own || (mask >> i & 1) == 0) continue;
    const Thread* const other = lane(thread, i);
    if (other == nullptr || other->state == Thread::ended) fail(&thread, "waits for lanes that have ended");
    if (other->awaits != Thread::lanes || other->mask != mask) {
      thread.awaits = Thread::lanes;
      block(thread);
      return thread.says;
    }
    any = any || other->says;
  }
  for (uint32_t i = 0; i < kLanes; i++) {
    if (i == own || (mask >> i & 1) == 0) continue;
    Thread& other = *lane(thread, i);
    other.awaits = Thread::nothing;
    other.says = any;
    other.inStep = mask == ~0u;  // the probe of LL128 counts on it
    wake(other);
  }
  thread.inStep = mask == ~0u;
  return any;
}

uint32_t Block::activeLanes(Thread& thread, const void* at) {
  thread.inStep = false;
  thread.steps++;
  const uint32_t self = 1u << thread.number % kLanes;
  if (grid_.lanes == Grid::apart) return self;
  if (grid_.lanes == Grid::asItComes && grid_.any(256) == 0) return self;
  thread.awaits = Thread::step;
  thread.at = at;
  thread.since = turns_;
  if (stepping_.empty() || stepping_.back() != thread.number / kLanes) stepping_.push_back(thread.number / kLanes);
  block(thread);
  thread.inStep = (thread.mask & maskOfLine(thread)) == maskOfLine(thread);
  return thread.mask;
}

bool Block::releaseSteps(bool all) {
  if (stepping_.empty()) return false;
  warps_.clear();
  warps_.swap(stepping_);
  std::sort(warps_.begin(), warps_.end());
  warps_.erase(std::unique(warps_.begin(), warps_.end()), warps_.end());
  for (const uint32_t warp : warps_) releaseStepsOf(warp, all);
  return true;
}

void Block::releaseStepsOf(uint32_t warp, bool all) {
  Thread* lanes[kLanes];
  uint32_t count = 0;
  uint64_t since = turns_;
  bool underWay = false;
  for (uint32_t i = warp * kLanes; i < std::min((warp + 1) * kLanes, grid_.threads); i++) {
    Thread& thread = *threads_[i];
    if (thread.awaits == Thread::step) {
      lanes[count++] = &thread;
      since = std::min(since, thread.since);
    } else {
      underWay = underWay || thread.state == Thread::ready;
    }
  }
  const bool patient = grid_.lanes == Grid::together || turns_ - since < kTurnsForOthers;
  if (underWay && patient && !all) {
    stepping_.push_back(warp);
    return;
  }
  const std::span here(lanes, count);
  for (Thread* thread : here) {
    thread->mask = 0;
    for (const Thread* other : here) {
      if (other->at == thread->at && other->steps == thread->steps) thread->mask |= 1u << other->number % kLanes;
    }
  }
  for (Thread* thread : here) {
    thread->awaits = Thread::nothing;
    wake(*thread);
  }
}

void Block::accessLine(Thread& thread, const LinePart& part) {
  if (!thread.inStep) {
    delay();
    access(part);
    delay();
    return;
  }
  auto& parts = lines_[lineOf(thread)];
  parts.push_back(part);
  if (parts.size() < kLanesOfLine) {
    thread.awaits = Thread::line;
    block(thread);
    thread.inStep = true;
    return;
  }
  // Whole: a writer's flag comes last, a reader looks for it first.
  std::sort(parts.begin(), parts.end(), [](const auto& one, const auto& two) { return one.address < two.address; });
  for (uint32_t i = 0; i < kLanesOfLine; i++) {
    if (parts[i].stores != part.stores || parts[i].address != parts[0].address + 2 * i)
      fail(&thread, "accesses another line than the lanes in step with it");
  }
  if (!part.stores) std::reverse(parts.begin(), parts.end());
  for (const LinePart& one : parts) access(one);
  parts.clear();
  for (uint32_t i = 0; i < kLanesOfLine; i++) {
    Thread& other = *lane(thread, thread.number % kLanes / kLanesOfLine * kLanesOfLine + i);
    if (&other == &thread) continue;
    other.awaits = Thread::nothing;
    wake(other);
  }
}

}  // namespace simt
