#include "simt/machine.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>

#include "residency.h"
#include "simt/block.h"

namespace simt {

constinit thread_local Place place;

namespace {

thread_local Thread* current = nullptr;

// Stacks for later grids, of any thread of the machine.
class Fibers {
 public:
  std::unique_ptr<ncclrun::Fiber> take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<ncclrun::Fiber>();
    auto fiber = std::move(free_.back());
    free_.pop_back();
    return fiber;
  }
  void give(std::unique_ptr<ncclrun::Fiber> fiber) {
    std::lock_guard lock(mutex_);
    if (free_.size() < kKept) free_.push_back(std::move(fiber));
  }

 private:
  static constexpr size_t kKept = 8 * kMaxThreads;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ncclrun::Fiber>> free_;
};
Fibers& fibers() {
  static auto& all = *new Fibers;
  return all;
}

uint64_t seed() {
  static std::atomic<uint64_t> grids{0};
  const char* const said = std::getenv("NCCLRUN_STAND_IN_SEED");
  const uint64_t first = said != nullptr ? std::strtoull(said, nullptr, 10) : uint64_t(getpid());
  return (first << 32 | ++grids) * 0x9e3779b97f4a7c15 | 1;
}

auto lanesBySetting() {
  const char* const said = std::getenv("NCCLRUN_STAND_IN_LANES");
  const std::string_view word = said == nullptr ? "" : said;
  return word == "together" ? Grid::together : word == "apart" ? Grid::apart : Grid::asItComes;
}

// Nothing happens here until another GPU, or the host, has done something.
void idle(int rounds) {
  if (rounds < 30) return;
  if (rounds < 100) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace

uint32_t Grid::any(uint32_t below) {
  random ^= random << 13;
  random ^= random >> 7;
  random ^= random << 17;
  return uint32_t((random >> 32) * below >> 32);
}

void runGrid(const char* kernel, int device, uint32_t blocks, uint32_t threads, const std::function<void()>& body) {
  Grid grid{kernel, blocks, threads, body, seed(), lanesBySetting()};
  stand_in::Residency residency(device, blocks);
  std::vector<std::unique_ptr<Block>> all;
  uint32_t begun = 0;
  for (int rounds = 0; begun < blocks || !all.empty(); rounds++) {
    for (uint32_t count = residency.admit(); count > 0; count--) all.push_back(std::make_unique<Block>(grid, begun++));
    const size_t first = all.empty() ? 0 : grid.any(uint32_t(all.size()));
    for (size_t i = 0; i < all.size(); i++) {
      if (all[(first + i) % all.size()]->turn()) rounds = 0;
    }
    residency.leave(uint32_t(std::erase_if(all, [](const auto& block) { return block->ended(); })));
    idle(rounds);
  }
}

Block::Block(Grid& grid, uint32_t number)
    : grid_(grid), number_(number), lines_(grid.threads / kLanesOfLine), left_(grid.threads) {
  if (grid.threads > kMaxThreads) fail(nullptr, "has too many threads");
  for (uint32_t i = 0; i < grid.threads; i++) {
    threads_.push_back(std::make_unique<Thread>());
    Thread& thread = *threads_.back();
    thread.block = this;
    thread.number = i;
    try {
      thread.fiber = fibers().take();
    } catch (const std::bad_alloc&) {
      fail(nullptr,
           "finds no memory for the stacks of its threads: NCCL_NTHREADS and NCCL_MAX_NCHANNELS make it fewer");
    }
    thread.fiber->start([](void* self) { static_cast<Thread*>(self)->block->grid().body(); }, &thread);
    ready_.push_back(&thread);
  }
}

void Block::resume(Thread& thread) {
  current = &thread;
  place = {{thread.number}, {number_}, {grid_.threads}, {grid_.blocks}};
  thread.stoodAside = false;
  thread.fiber->resume();
  current = nullptr;
  if (!thread.fiber->done()) {
    if (thread.state == Thread::ready) ready_.push_back(&thread);
    return;
  }
  thread.state = Thread::ended;
  fibers().give(std::move(thread.fiber));
  left_--;
}

// A warp, for longer than the others need for what they do meanwhile.
void Block::holdBack() {
  const uint32_t warp = grid_.any((grid_.threads + kLanes - 1) / kLanes);
  const uint64_t until = turns_ + grid_.any(24);
  for (uint32_t i = warp * kLanes; i < std::min((warp + 1) * kLanes, grid_.threads); i++)
    threads_[i]->notBefore = std::max(threads_[i]->notBefore, until);
}

bool Block::turn() {
  turns_++;
  if (grid_.any(16) == 0) holdBack();
  now_.swap(ready_);
  for (size_t i = now_.size(); i > 1; i--) std::swap(now_[i - 1], now_[grid_.any(uint32_t(i))]);
  bool moved = false;
  for (Thread* thread : now_) {
    if (thread->notBefore > turns_) {
      ready_.push_back(thread);
      continue;
    }
    resume(*thread);
    moved = moved || !thread->stoodAside;
  }
  now_.clear();
  moved = releaseSteps(ready_.empty()) || moved;
  if (ready_.empty() && left_ > 0) fail(nullptr, "hangs: all of its threads wait for one another");
  return moved;
}

// Until it is woken.
void Block::block(Thread& thread) {
  thread.state = Thread::waiting;
  thread.fiber->suspend();
}
void Block::wake(Thread& thread) {
  thread.state = Thread::ready;
  ready_.push_back(&thread);
}

void Block::standAside(Thread& thread, uint64_t turns, bool waits) {
  thread.inStep = false;
  thread.notBefore = turns_ + turns;
  thread.stoodAside = waits;
  thread.fiber->suspend();
}

void Block::arrive(Thread& thread, uint32_t number, uint32_t threads, bool waits) {
  thread.inStep = false;
  thread.steps = 0;
  Barrier& barrier = barriers_[number % 16];
  const std::string name = "barrier " + std::to_string(number);
  if (number >= 16 || threads == 0 || threads > grid_.threads || threads % kLanes != 0)
    fail(&thread, "comes to " + name + " of " + std::to_string(threads) + " threads, which there cannot be");
  if (barrier.came == 0) barrier.threads = threads;
  if (barrier.threads != threads)
    fail(&thread, "comes to " + name + " of " + std::to_string(threads) + " threads, to which others came as one of " +
                      std::to_string(barrier.threads));
  if (barrier.who[thread.number]) fail(&thread, "comes to " + name + " twice before the others have come once");
  barrier.who.set(thread.number);
  if (++barrier.came == threads) {
    for (Thread* other : barrier.waiting) wake(*other);
    barrier = {};
    return;
  }
  if (!waits) return;
  barrier.waiting.push_back(&thread);
  block(thread);
}

void* Block::shared(const void* key, uint64_t bytes) {
  auto& memory = shared_[key];
  if (memory == nullptr) {
    memory = std::make_unique<char[]>(bytes);
    std::fill_n(memory.get(), bytes, char(0xa5));  // nobody may rely on what it begins with
  }
  return memory.get();
}

void Block::fail(const Thread* thread, const std::string& what) const {
  std::string where = std::string(grid_.kernel) + ": block " + std::to_string(number_);
  if (thread != nullptr) where += ", thread " + std::to_string(thread->number);
  std::string waits;
  for (const auto& one : threads_) {
    if (one->state != Thread::waiting || one->number % kLanes != 0) continue;
    uint32_t at = 0;
    while (at < 16 && std::find(barriers_[at].waiting.begin(), barriers_[at].waiting.end(), one.get()) ==
                          barriers_[at].waiting.end())
      at++;
    waits += " warp " + std::to_string(one->number / kLanes) + ": " +
             (at < 16 ? "barrier " + std::to_string(at) : "its lanes") + ";";
  }
  std::fprintf(stderr, "stand-in: %s %s.%s\n", where.c_str(), what.c_str(), waits.c_str());
  std::abort();
}

bool chance(uint32_t times) { return current->block->grid().any(times) == 0; }

// Mostly not at all, else for a few turns, seldom for many.
void delay() {
  Grid& grid = current->block->grid();
  current->inStep = false;
  const uint32_t random = grid.any(1024);
  if (random >= 128) return;
  current->block->standAside(*current, random == 0 ? 30 : random % 4, false);
}
void standAside() { current->block->standAside(*current, 0, true); }
void barrierSync(uint32_t barrier, uint32_t threads) { current->block->arrive(*current, barrier, threads, true); }
void barrierArrive(uint32_t barrier, uint32_t threads) { current->block->arrive(*current, barrier, threads, false); }
bool syncLanes(uint32_t mask, bool says) { return current->block->syncLanes(*current, mask, says); }
uint32_t activeLanes() { return current->block->activeLanes(*current, __builtin_return_address(0)); }
void loadLine(const uint64_t* from, uint64_t& a, uint64_t& b) {
  current->block->accessLine(*current, {const_cast<uint64_t*>(from), &a, &b, false});
}
void storeLine(uint64_t* to, uint64_t a, uint64_t b) { current->block->accessLine(*current, {to, &a, &b, true}); }
void* shared(const void* key, uint64_t bytes) { return current->block->shared(key, bytes); }

}  // namespace simt
