// Host streams: what is queued on one runs in order, on a thread of its own that starts with the first operation.
// Whoever waits for the stream lends it the waiting thread instead, if the stream's own has not begun yet.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "datapath/launch.h"
#include "datapath/loan.h"
#include "ncclrun.h"

namespace ncclrun {

class Stream {
 public:
  Stream();
  ~Stream();  // waits for what is queued
  // Those of all streams that have nothing to run end, when they next have nothing; the next push starts them again.
  // For a process whose main thread has ended.
  static void endIdleThreads();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // The stream behind a handle; null if it is no stream (any more). A default stream's handle is the first of the
  // process's default streams.
  static Stream* find(ncclrunStream_t handle);

  // ncclSystemError if the stream's thread cannot be started; then nothing was queued.
  Status push(std::shared_ptr<Launcher> launcher, Launch&& launch);
  Status push(void (*function)(void*, ncclResult_t), void* argument);
  // Waits until everything queued before the call has ended. The first error since the last report, which this is.
  Status synchronize();
  // Runs what is queued on the calling thread, for about this long; what is left goes on on the stream's. False: there
  // is some left. With no time at all, only sees to it that the stream's thread is awake. Where nothing is left,
  // `error` is the first since the last report, which this is.
  bool lend(uint64_t nanoseconds, Status& error);
  // Sees to it that the stream's own thread runs what is queued.
  void runByItself();
  bool idle() const { return ended_.load(std::memory_order_seq_cst) == pushed_.load(std::memory_order_seq_cst); }

 private:
  struct Item {
    std::shared_ptr<Launcher> launcher;  // null: a callback
    Launch launch;
    void (*function)(void*, ncclResult_t) = nullptr;
    void* argument = nullptr;
  };
  using Lock = std::unique_lock<std::mutex>;

  Status push(Item&& item);
  Status startThread();
  void threadMain();
  void waitForWork(Lock& lock);
  bool mustWake() const { return asleep_ && !lends_ && !(looksOut_ && lent_ >= kLentOften); }
  void pollForWork(Lock& lock);
  void runQueue(Lock& lock);
  void waitForTurn(Lock& lock, uint64_t until);
  void takeBatch();
  void runBatch(Loan* loan);
  void endBatch();
  void runItem(Item& item, Loan* loan);
  void report(const Status& status);
  Status takeError();

  mutable std::mutex mutex_;
  std::condition_variable work_;  // the thread waits for items
  std::condition_variable ended_changed_;
  std::vector<Item> queue_;  // not yet taken
  std::vector<Item> batch_;  // taken by whoever runs
  size_t callbacks_ = 0;     // in queue_
  bool running_ = false;     // somebody works on batch_
  bool asleep_ = false;      // the thread waits for work_
  // A caller that waits for each of its operations runs them itself; waking the thread for nothing would cost more than
  // the operation. So after a few such turns the thread is not woken any more but looks out from time to time, until
  // nothing has come for a while.
  static constexpr uint32_t kLentOften = 4;
  static constexpr auto kLookOutEvery = std::chrono::microseconds(200);
  static constexpr uint32_t kLookOuts = 25;
  uint32_t lent_ = 0;      // turns in succession that a waiting caller ran
  bool looksOut_ = false;  // the thread wakes by itself
  bool awaited_ =
      false;  // somebody slept until the last turn's end: the next operation comes from there, with its thread
  bool lends_ = false;          // who lends a thread once does so for every operation, which waits for that
  bool owed_ = false;           // what is queued is the stream's thread's to run
  bool handed_ = false;         // the stream's thread has to finish the loan
  std::unique_ptr<Loan> loan_;  // once there was one
  bool stopping_ = false;
  bool endsIdle_ = false;
  bool exited_ = false;           // the thread, for want of work
  Status error_;                  // first since the last report
  uint64_t spinNanoseconds_ = 0;  // of the last launch
  std::atomic<uint64_t> pushed_{0};
  std::atomic<uint64_t> ended_{0};
  std::atomic<uint64_t> wakeAt_{~0ull};  // the least `ended_` that somebody waits for
  std::thread thread_;
};

// What comes on `later` from now on waits for what is on `earlier`.
Status orderStreams(Stream& later, Stream& earlier);

// Null, and CUDA's own handles of its default streams (cudaStreamLegacy, cudaStreamPerThread).
inline bool isDefaultStream(ncclrunStream_t handle) { return reinterpret_cast<uintptr_t>(handle) <= 2; }

// That the handle is no stream of the host device.
Status noSuchStream(ncclrunStream_t handle);
// There are streams that a program made, and this is one of them. (CUDA's are others.)
bool isHostStream(ncclrunStream_t handle);

// What a default stream's handle stands for in a communicator of this lane: ranks of one communicator that live in one
// process wait for each other, so each has a default stream of its own. Lane 0: null.
ncclrunStream_t defaultStream(uint32_t lane);

}  // namespace ncclrun
