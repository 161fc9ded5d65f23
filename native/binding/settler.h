// Promises of the engine: begun on the event loop, ended on threads of the engine, settled on the event loop again.
#pragma once
#include <napi.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "nccl.h"

namespace ncclrun::binding {

// One promise under way. What it refers to in JavaScript is touched on the event loop only.
struct Pending {
  explicit Pending(Napi::Env env) : deferred(Napi::Promise::Deferred::New(env)) {}

  Napi::Promise::Deferred deferred;
  std::vector<Napi::ObjectReference> pinned;  // buffers that the engine reads or writes
  ncclResult_t result = ncclSuccess;
  std::string sentence;         // why, if it is not success
  std::function<void()> ended;  // on the event loop, before the promise settles; may set the sentence
  std::function<void()> lost;   // on the thread that ended it, if the environment is gone: undoes what nobody will get
  std::function<Napi::Value(Napi::Env)> value;  // what the promise resolves to; unset: undefined
};

// One per environment (the main thread or a worker thread).
class Settler : public std::enable_shared_from_this<Settler> {
 public:
  static std::shared_ptr<Settler> of(Napi::Env env);

  // The event loop stays alive until this one has ended.
  void begin(const std::shared_ptr<Pending>& pending);
  // From any thread.
  void end(const std::shared_ptr<Pending>& pending, ncclResult_t result);
  // Runs `work`, which may block, on a thread of its own; ends `pending` with its result and the sentence it left.
  void block(const std::shared_ptr<Pending>& pending, std::function<ncclResult_t()> work);

  // Runs `work`, which may block, on a thread of its own; no promise waits for it. 0, or errno: there is no thread.
  static int inBackground(std::function<void()> work);

  // Called when the environment goes, while there are promises under way: what has to stop before their buffers are
  // freed. Returns a number for forget().
  uint64_t onEnvironmentEnd(std::function<void()> stop);
  // The same, behind all of those: for what waits for them.
  uint64_t afterEnvironmentEnd(std::function<void()> stop);
  // What wake() makes run on the event loop. Returns a number for wake() and forget().
  uint64_t onWake(std::function<void(Napi::Env)> watcher);
  // False: it is not known any more.
  bool forget(uint64_t number);
  // From any thread.
  void wake(uint64_t number);

  // The event loop stays alive between these.
  void hold(Napi::Env env);
  void release(Napi::Env env);
  // Once nothing is under way: now, or when what is has ended. Event loop.
  void whenQuiet(std::function<void()> action);

 private:
  struct Data;
  static void settleAll(Napi::Env env, Napi::Function, std::shared_ptr<Settler>* settler, void*);
  using Bridge = Napi::TypedThreadSafeFunction<std::shared_ptr<Settler>, void, settleAll>;

  void open(Napi::Env env);
  void close();
  void settle(Napi::Env env, Pending& pending);
  void ring();
  void beQuiet();

  Bridge bridge_;
  std::set<std::shared_ptr<Pending>> underWay_;                    // of the event loop
  std::vector<std::pair<uint64_t, std::function<void()>>> stops_;  // of the event loop
  std::vector<std::pair<uint64_t, std::function<void()>>> lastStops_;
  std::map<uint64_t, std::function<void(Napi::Env)>> watchers_;  // of the event loop
  uint64_t lastNumber_ = 0;
  size_t holds_ = 0;
  std::vector<std::function<void()>> whenQuiet_;

  std::mutex mutex_;
  bool closed_ = false;
  std::vector<uint64_t> woken_;
  std::vector<std::shared_ptr<Pending>> ended_;
};

}  // namespace ncclrun::binding
