// A connect() or accept() of a plugin that may block in it: a thread of a pool (attempt_pool.h) repeats the call until
// it yields a connection. Nobody waits for that thread: the caller asks whether there is a result, and a clock watches
// each call.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "net/plugin/abi.h"

namespace ncclrun::net::plugin {

// What a call yields; comm null: not yet.
struct Yield {
  int code = 0;
  void* comm = nullptr;
  abi::DeviceHandle* driver = nullptr;
};

class Attempt {
 public:
  enum class Kind { connect, accept, join };  // join: a group of a collective network
  struct Work {
    Kind kind = Kind::connect;
    std::string label;                         // of the call, for errors
    uint64_t timeout = 0;                      // ns that one call may take
    std::function<Yield()> call;               // runs in the thread; owns all that it needs
    std::function<void(void* comm)> close;     // closes what an abandoned attempt has yielded
    std::shared_ptr<std::atomic<int>> inside;  // counts threads that are in a call, or close what it yielded
  };
  // An error: no thread can be started.
  static Status start(Work work, std::unique_ptr<Attempt>& out);

  // Abandons the attempt, and returns at once. A thread that is in a call closes what that yields, and releases `call`;
  // otherwise both happen here.
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // isOver: `out` is the last call's. An error: a call has taken too long.
  Status poll(bool& isOver, Yield& out);

  struct State;

 private:
  explicit Attempt(std::shared_ptr<State> state);

  const std::shared_ptr<State> state_;
};

}  // namespace ncclrun::net::plugin
