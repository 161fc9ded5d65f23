// Host streams: work queued on one runs in order, on a thread of its own that starts with the first operation. A thread
// that waits for the stream runs the work itself, if the stream's own thread has not begun yet.
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
#include "datapath/borrowed_thread.h"
#include "datapath/launch.h"
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
  // Runs queued work on the calling thread for about this long; the stream's thread continues the rest. Returns false
  // if work is left. With no time at all, only wakes the stream's thread. If no work is left, `error` is the first
  // error since the last report, which this is.
  bool runOnCaller(uint64_t nanoseconds, Status& error);
  // Makes the stream's own thread run the queued work.
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
  bool mustWake() const { return asleep_ && !callerAlwaysRuns_ && !(polls_ && callerRuns_ >= kCallerRunsOften); }
  void pollForWork(Lock& lock);
  void runQueue(Lock& lock);
  void waitForRunner(Lock& lock, uint64_t until);
  void takeBatch();
  void runBatch(BorrowedThread* borrowed);
  void endBatch();
  void runItem(Item& item, BorrowedThread* borrowed);
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
  // the operation. So after a few such operations the thread is not woken any more but polls from time to time, until
  // no operation has arrived for a while.
  static constexpr uint32_t kCallerRunsOften = 4;
  static constexpr auto kPollInterval = std::chrono::microseconds(200);
  static constexpr uint32_t kPolls = 25;
  uint32_t callerRuns_ = 0;  // batches in succession that a waiting caller ran
  bool polls_ = false;       // the thread wakes up by itself
  bool awaited_ = false;     // a thread slept until the last batch's end: it will queue, and run, the next operation
  bool callerAlwaysRuns_ = false;             // a caller that has run work once does so for every operation
  bool owed_ = false;                         // the stream's thread has to run the queue
  bool handed_ = false;                       // the stream's thread has to finish the borrowed thread's work
  std::unique_ptr<BorrowedThread> borrowed_;  // once there was one
  bool stopping_ = false;
  bool endsIdle_ = false;
  bool exited_ = false;           // the thread, for want of work
  Status error_;                  // first since the last report
  uint64_t spinNanoseconds_ = 0;  // of the last launch
  std::atomic<uint64_t> pushed_{0};
  std::atomic<uint64_t> ended_{0};
  std::atomic<uint64_t> wakeAt_{~0ull};  // the smallest `ended_` that a thread waits for
  std::thread thread_;
};

// Makes later work on `later` wait for the work queued on `earlier`.
Status orderStreams(Stream& later, Stream& earlier);

// Null, and CUDA's own handles of its default streams (cudaStreamLegacy, cudaStreamPerThread).
inline bool isDefaultStream(ncclrunStream_t handle) { return reinterpret_cast<uintptr_t>(handle) <= 2; }

// That the handle is no stream of the host device.
Status noSuchStream(ncclrunStream_t handle);
// There are streams that a program made, and this is one of them. (CUDA's are others.)
bool isHostStream(ncclrunStream_t handle);

// The stream that a default stream's handle stands for in a communicator of this slot (default_stream_slots.h). Slot 0:
// null.
ncclrunStream_t defaultStream(uint32_t slot);

}  // namespace ncclrun
