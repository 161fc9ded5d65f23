// ncclrun.h's host streams.
#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "host/default_stream_slots.h"
#include "host/stream.h"
#include "ncclrun.h"

#define NCCLRUN_EXPORT extern "C" __attribute__((visibility("default")))

struct ncclrunStream {
  ncclrun::Stream stream;
};

namespace ncclrun {
namespace {

// All there are; they live until the process ends: threads may still use them while destructors run.
struct Streams {
  std::mutex mutex;
  std::deque<ncclrunStream> defaults = std::deque<ncclrunStream>(1);  // by slot; their addresses are stable
  std::unordered_set<const ncclrunStream*> made;                      // and not destroyed
  std::atomic<bool> anyMade{false};                                   // ever
  std::atomic<uint64_t> destroyed{0};
};

Streams& handles() {
  static auto* const streams = new Streams;
  return *streams;
}

ncclrunStream& defaultAt(uint32_t slot) {
  std::lock_guard lock(handles().mutex);
  while (handles().defaults.size() <= slot) handles().defaults.emplace_back();
  return handles().defaults[slot];
}

// A thread mostly asks for the same one again.
bool lives(ncclrunStream_t handle) {
  thread_local ncclrunStream_t last = nullptr;
  thread_local uint64_t destroyed = 0;
  const uint64_t now = handles().destroyed.load(std::memory_order_acquire);
  if (handle == last && destroyed == now) return true;
  std::lock_guard lock(handles().mutex);
  const auto isIt = [&](const ncclrunStream& one) { return &one == handle; };
  if (!handles().made.contains(handle) && std::none_of(handles().defaults.begin(), handles().defaults.end(), isIt))
    return false;
  last = handle;
  destroyed = now;
  return true;
}

// The streams that a handle stands for: a default one for the default streams of the calling thread's ranks, or of all
// where it has none. None where it is no stream.
std::vector<Stream*> streamsOf(ncclrunStream_t handle) {
  std::vector<Stream*> found;
  if (!isDefaultStream(handle)) {
    if (lives(handle)) found.push_back(&handle->stream);
    return found;
  }
  if (const std::vector<uint32_t> slots = ownDefaultStreamSlots(); !slots.empty()) {
    for (const uint32_t slot : slots) found.push_back(&defaultAt(slot).stream);
    return found;
  }
  std::lock_guard lock(handles().mutex);
  for (ncclrunStream& one : handles().defaults) found.push_back(&one.stream);
  return found;
}

// A callback that waits for several streams: the last of them calls it, with the first error.
struct Meeting {
  std::atomic<size_t> missing;
  std::atomic<ncclResult_t> first{ncclSuccess};
  void (*function)(void*, ncclResult_t);
  void* argument;

  static void arrive(void* meeting, ncclResult_t result) {
    auto& self = *static_cast<Meeting*>(meeting);
    ncclResult_t none = ncclSuccess;
    if (result != ncclSuccess) self.first.compare_exchange_strong(none, result);
    if (self.missing.fetch_sub(1) > 1) return;
    const std::unique_ptr<Meeting> over(&self);
    self.function(self.argument, self.first);
  }
};

ncclResult_t refuseInChild() {
  if (!inForkedChild()) return ncclSuccess;
  return fail(ncclInvalidUsage,
              "this process was forked from one that uses ncclrun: it must exec a program before it can use streams");
}

}  // namespace

Stream* Stream::find(ncclrunStream_t handle) {
  if (isDefaultStream(handle)) return &defaultAt(0).stream;
  return lives(handle) ? &handle->stream : nullptr;
}

Status noSuchStream(ncclrunStream_t handle) {
  return {ncclInvalidArgument, formatSentence("stream %p is no stream of the host device: ncclrunStreamCreate did not "
                                              "make it, or it was destroyed",
                                              static_cast<void*>(handle))};
}

bool isHostStream(ncclrunStream_t handle) {
  if (!handles().anyMade.load(std::memory_order_acquire)) return false;
  std::lock_guard lock(handles().mutex);
  return handles().made.contains(handle);
}

ncclrunStream_t defaultStream(uint32_t slot) { return slot == 0 ? nullptr : &defaultAt(slot); }

}  // namespace ncclrun

using ncclrun::Stream;

namespace {

// body(streams) of the streams that the handle stands for.
template <class Body>
ncclResult_t withStreams(const char* function, ncclrunStream_t handle, Body&& body) {
  if (const ncclResult_t refused = ncclrun::refuseInChild(); refused != ncclSuccess) return refused;
  const std::vector<Stream*> streams = ncclrun::streamsOf(handle);
  if (!streams.empty()) return body(streams);
  return ncclrun::fail(ncclInvalidArgument, "%s: %s", function, ncclrun::noSuchStream(handle).sentence.c_str());
}

// The same of a stream that is no default one.
template <class Body>
ncclResult_t withOwnStream(const char* function, ncclrunStream_t handle, Body&& body) {
  if (handle == nullptr) return ncclrun::fail(ncclInvalidArgument, "%s: stream is NULL", function);
  if (!ncclrun::isDefaultStream(handle)) return withStreams(function, handle, [&](auto&) { return body(*handle); });
  return ncclrun::fail(ncclInvalidArgument, "%s: stream is %p, a default stream", function, static_cast<void*>(handle));
}

}  // namespace

NCCLRUN_EXPORT ncclResult_t ncclrunStreamCreate(ncclrunStream_t* stream) {
  if (stream == nullptr) return ncclrun::fail(ncclInvalidArgument, "ncclrunStreamCreate: stream is NULL");
  if (ncclResult_t refused = ncclrun::refuseInChild(); refused != ncclSuccess) return refused;
  *stream = new (std::nothrow) ncclrunStream;
  if (*stream == nullptr) return ncclrun::fail(ncclSystemError, "ncclrunStreamCreate: no memory");
  std::lock_guard lock(ncclrun::handles().mutex);
  ncclrun::handles().made.insert(*stream);
  ncclrun::handles().anyMade.store(true, std::memory_order_release);
  return ncclSuccess;
}

NCCLRUN_EXPORT ncclResult_t ncclrunStreamDestroy(ncclrunStream_t stream) {
  if (stream == nullptr)
    return ncclrun::fail(ncclInvalidArgument, "ncclrunStreamDestroy: the default stream (NULL) stays");
  return withOwnStream("ncclrunStreamDestroy", stream, [](ncclrunStream& own) {
    const ncclrun::Status status = own.stream.synchronize();
    {
      std::lock_guard lock(ncclrun::handles().mutex);
      ncclrun::handles().made.erase(&own);
      ncclrun::handles().destroyed.fetch_add(1, std::memory_order_release);
    }
    delete &own;
    return ncclrun::result(status);
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunStreamSynchronize(ncclrunStream_t stream) {
  return withStreams("ncclrunStreamSynchronize", stream, [](const std::vector<Stream*>& streams) {
    ncclrun::Status first;
    for (Stream* one : streams) {
      if (ncclrun::Status status = one->synchronize(); first.ok()) first = std::move(status);
    }
    return ncclrun::result(first);
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunStreamQuery(ncclrunStream_t stream) {
  return withStreams("ncclrunStreamQuery", stream, [](const std::vector<Stream*>& streams) {
    for (const Stream* one : streams) {
      if (!one->idle()) return ncclInProgress;
    }
    return ncclSuccess;
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunStreamLend(ncclrunStream_t stream, uint64_t nanoseconds) {
  return withOwnStream("ncclrunStreamLend", stream, [&](ncclrunStream& own) {
    ncclrun::Status error;
    return own.stream.runOnCaller(nanoseconds, error) ? ncclrun::result(error) : ncclInProgress;
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunStreamCallback(ncclrunStream_t stream, void (*function)(void*, ncclResult_t),
                                                  void* argument) {
  if (function == nullptr) return ncclrun::fail(ncclInvalidArgument, "ncclrunStreamCallback: function is NULL");
  return withStreams("ncclrunStreamCallback", stream, [&](const std::vector<Stream*>& streams) {
    if (streams.size() == 1) return ncclrun::result(streams.front()->push(function, argument));
    auto* meeting = new (std::nothrow) ncclrun::Meeting{streams.size(), ncclSuccess, function, argument};
    if (meeting == nullptr) return ncclrun::fail(ncclSystemError, "ncclrunStreamCallback: no memory");
    for (Stream* one : streams) {
      // A stream that cannot start its thread has nothing to wait for.
      if (!one->push(ncclrun::Meeting::arrive, meeting).ok()) ncclrun::Meeting::arrive(meeting, ncclSystemError);
    }
    return ncclSuccess;
  });
}
