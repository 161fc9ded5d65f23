// Signs of life that a process gives whatever its callers do: a slow application is not a stopped one.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace ncclrun::aggregator {

class Heartbeats {
 public:
  explicit Heartbeats(uint64_t intervalNanoseconds) : interval_(intervalNanoseconds) {}
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  // A thread calls `beat` at every interval until remove() has returned. The thread begins with the first call.
  Status add(const void* who, std::function<void()> beat);
  void remove(const void* who);

 private:
  void run();

  const uint64_t interval_;
  std::mutex mutex_;
  std::condition_variable ends_;
  std::map<const void*, std::function<void()>> beats_;
  bool isOver_ = false;
  std::thread thread_;
};

}  // namespace ncclrun::aggregator
