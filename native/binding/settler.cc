#include "binding/settler.h"

#include <pthread.h>
#include <signal.h>

#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "base/limits.h"
#include "binding/error.h"

namespace ncclrun::binding {

// What the environment keeps for us.
struct Settler::Data {
  std::shared_ptr<Settler> settler;
};

std::shared_ptr<Settler> Settler::of(Napi::Env env) {
  auto* data = env.GetInstanceData<Data>();
  if (data == nullptr) {
    data = new Data{std::make_shared<Settler>()};
    env.SetInstanceData<Data>(data);
    data->settler->open(env);
  }
  return data->settler;
}

void Settler::open(Napi::Env env) {
  bridge_ = Bridge::New(env, "ncclrun engine", 0, 1, new std::shared_ptr<Settler>(shared_from_this()),
                        [](Napi::Env, void*, std::shared_ptr<Settler>* held) { delete held; });
  bridge_.Unref(env);
  // Hooks run in reverse order: this one before the bridge goes.
  napi_add_env_cleanup_hook(
      env, [](void* settler) { static_cast<Settler*>(settler)->close(); }, this);
}

void Settler::close() {
  for (const auto& [number, stop] : stops_) stop();
  for (const auto& [number, stop] : lastStops_) stop();
  stops_.clear();
  lastStops_.clear();
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    ended_.clear();
    woken_.clear();
  }
  // Threads of the engine may hold the last reference; what belongs to JavaScript has to go on this one.
  for (const auto& pending : underWay_) pending->pinned.clear();
  underWay_.clear();
  watchers_.clear();
  holds_ = 0;
  beQuiet();
  bridge_.Release();
}

void Settler::begin(const std::shared_ptr<Pending>& pending) {
  hold(pending->deferred.Env());
  underWay_.insert(pending);
}

void Settler::end(const std::shared_ptr<Pending>& pending, ncclResult_t result) {
  std::unique_lock lock(mutex_);
  if (closed_) {
    lock.unlock();
    if (pending->lost) pending->lost();
    return;
  }
  pending->result = result;
  ended_.push_back(pending);
  ring();
}

// With the lock, after one more was noted.
void Settler::ring() {
  if (ended_.size() + woken_.size() == 1) bridge_.NonBlockingCall();
}

void Settler::wake(uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  woken_.push_back(number);
  ring();
}

void Settler::hold(Napi::Env env) {
  if (holds_++ == 0) bridge_.Ref(env);
}

void Settler::release(Napi::Env env) {
  if (--holds_ > 0) return;
  bridge_.Unref(env);
  beQuiet();
}

void Settler::whenQuiet(std::function<void()> action) {
  if (holds_ == 0) return action();
  whenQuiet_.push_back(std::move(action));
}

void Settler::beQuiet() {
  for (const auto& action : std::exchange(whenQuiet_, {})) action();
}

void Settler::block(const std::shared_ptr<Pending>& pending, std::function<ncclResult_t()> work) {
  begin(pending);
  const int error = inBackground([self = shared_from_this(), pending, work = std::move(work)]() mutable {
    const ncclResult_t result = work();
    if (result != ncclSuccess) pending->sentence = ncclGetLastError(nullptr);
    work = nullptr;
    self->end(pending, result);
  });
  if (error == 0) return;
  pending->sentence = std::string("cannot start a thread: ") + std::strerror(error) + limitBehind(error);
  end(pending, ncclSystemError);
}

int Settler::inBackground(std::function<void()> work) {
  // Threads of ours take no signals: they are the event loop's.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = 0;
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error& refused) {
    error = refused.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

void Settler::settleAll(Napi::Env env, Napi::Function, std::shared_ptr<Settler>* settler, void*) {
  if (env == nullptr) return;
  const std::shared_ptr<Settler> self = *settler;
  std::vector<std::shared_ptr<Pending>> ended;
  std::vector<uint64_t> woken;
  {
    std::lock_guard lock(self->mutex_);
    ended.swap(self->ended_);
    woken.swap(self->woken_);
  }
  // Operations first: what a communicator closes behind has ended.
  for (const uint64_t number : woken) {
    const Napi::HandleScope scope(env);
    const auto found = self->watchers_.find(number);
    if (found == self->watchers_.end()) continue;
    const auto watcher = found->second;  // it may forget itself
    try {
      watcher(env);
    } catch (const Napi::Error&) {
      // As below.
    }
  }
  for (const auto& pending : ended) {
    const Napi::HandleScope scope(env);
    try {
      self->settle(env, *pending);
    } catch (const Napi::Error&) {
      // JavaScript does not run any more: the worker thread is being terminated, and nobody waits for the promise.
    }
    if (self->underWay_.erase(pending) > 0) self->release(env);
  }
}

void Settler::settle(Napi::Env env, Pending& pending) {
  if (pending.ended) pending.ended();
  pending.pinned.clear();
  if (pending.result != ncclSuccess) {
    pending.deferred.Reject(ncclError(env, pending.result, pending.sentence).Value());
    return;
  }
  pending.deferred.Resolve(pending.value ? pending.value(env) : env.Undefined());
}

uint64_t Settler::onEnvironmentEnd(std::function<void()> stop) {
  stops_.emplace_back(++lastNumber_, std::move(stop));
  return lastNumber_;
}

uint64_t Settler::afterEnvironmentEnd(std::function<void()> stop) {
  lastStops_.emplace_back(++lastNumber_, std::move(stop));
  return lastNumber_;
}

uint64_t Settler::onWake(std::function<void(Napi::Env)> watcher) {
  watchers_.emplace(++lastNumber_, std::move(watcher));
  return lastNumber_;
}

bool Settler::forget(uint64_t number) {
  size_t forgotten = watchers_.erase(number);
  for (auto* const stops : {&stops_, &lastStops_})
    forgotten += std::erase_if(*stops, [number](const auto& entry) { return entry.first == number; });
  return forgotten > 0;
}

}  // namespace ncclrun::binding
