// ncclrun.h's host streams.
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "core/fork.h"
#include "core/lanes.h"
#include "core/stream.h"
#include "ncclrun.h"

#define NCCLRUN_EXPORT extern "C" __attribute__((visibility("default")))

struct ncclrunStream {
  ncclrun::Stream stream;
};

namespace ncclrun {
namespace {

// Live until the process ends: threads may still use them while destructors run.
struct DefaultStreams {
  std::mutex mutex;
  std::deque<ncclrunStream> streams = std::deque<ncclrunStream>(1);  // by lane; they stay where they are
};

DefaultStreams& defaults() {
  static auto* const all = new DefaultStreams;
  return *all;
}

ncclrunStream& defaultAt(uint32_t lane) {
  std::lock_guard lock(defaults().mutex);
  while (defaults().streams.size() <= lane) defaults().streams.emplace_back();
  return defaults().streams[lane];
}

// The streams that a handle stands for: null for the default streams of the calling thread's ranks, or of all where it
// has none.
std::vector<Stream*> streamsOf(ncclrunStream_t handle) {
  if (handle != nullptr) return {&handle->stream};
  std::vector<Stream*> found;
  if (const std::vector<uint32_t> lanes = ownLanes(); !lanes.empty()) {
    for (const uint32_t lane : lanes) found.push_back(&defaultAt(lane).stream);
    return found;
  }
  std::lock_guard lock(defaults().mutex);
  for (ncclrunStream& one : defaults().streams) found.push_back(&one.stream);
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

ncclResult_t result(const Status& status) {
  return status.ok() ? ncclSuccess : fail(status.code, "%s", status.sentence.c_str());
}

}  // namespace

Stream& Stream::of(ncclrunStream_t handle) { return (handle != nullptr ? *handle : defaultAt(0)).stream; }

ncclrunStream_t defaultStream(uint32_t lane) { return lane == 0 ? nullptr : &defaultAt(lane); }

}  // namespace ncclrun

using ncclrun::Stream;

NCCLRUN_EXPORT ncclResult_t ncclrunStreamCreate(ncclrunStream_t* stream) {
  if (stream == nullptr) return ncclrun::fail(ncclInvalidArgument, "ncclrunStreamCreate: stream is NULL");
  if (ncclResult_t refused = ncclrun::refuseInChild(); refused != ncclSuccess) return refused;
  *stream = new (std::nothrow) ncclrunStream;
  return *stream != nullptr ? ncclSuccess : ncclrun::fail(ncclSystemError, "ncclrunStreamCreate: no memory");
}

NCCLRUN_EXPORT ncclResult_t ncclrunStreamDestroy(ncclrunStream_t stream) {
  if (stream == nullptr)
    return ncclrun::fail(ncclInvalidArgument, "ncclrunStreamDestroy: the default stream (NULL) stays");
  if (ncclResult_t refused = ncclrun::refuseInChild(); refused != ncclSuccess) return refused;
  const ncclrun::Status status = stream->stream.synchronize();
  delete stream;
  return ncclrun::result(status);
}

NCCLRUN_EXPORT ncclResult_t ncclrunStreamSynchronize(ncclrunStream_t stream) {
  if (ncclResult_t refused = ncclrun::refuseInChild(); refused != ncclSuccess) return refused;
  if (stream != nullptr) return ncclrun::result(stream->stream.synchronize());
  ncclrun::Status first;
  for (Stream* one : ncclrun::streamsOf(stream)) {
    if (ncclrun::Status status = one->synchronize(); first.ok()) first = std::move(status);
  }
  return ncclrun::result(first);
}

NCCLRUN_EXPORT ncclResult_t ncclrunStreamQuery(ncclrunStream_t stream) {
  if (ncclResult_t refused = ncclrun::refuseInChild(); refused != ncclSuccess) return refused;
  for (const Stream* one : ncclrun::streamsOf(stream)) {
    if (!one->idle()) return ncclInProgress;
  }
  return ncclSuccess;
}

NCCLRUN_EXPORT ncclResult_t ncclrunStreamLend(ncclrunStream_t stream, uint64_t nanoseconds) {
  if (stream == nullptr) return ncclrun::fail(ncclInvalidArgument, "ncclrunStreamLend: stream is NULL");
  if (ncclResult_t refused = ncclrun::refuseInChild(); refused != ncclSuccess) return refused;
  ncclrun::Status error;
  return stream->stream.lend(nanoseconds, error) ? ncclrun::result(error) : ncclInProgress;
}

NCCLRUN_EXPORT ncclResult_t ncclrunStreamCallback(ncclrunStream_t stream, void (*function)(void*, ncclResult_t),
                                                  void* argument) {
  if (function == nullptr) return ncclrun::fail(ncclInvalidArgument, "ncclrunStreamCallback: function is NULL");
  if (ncclResult_t refused = ncclrun::refuseInChild(); refused != ncclSuccess) return refused;
  const auto streams = ncclrun::streamsOf(stream);
  if (streams.size() == 1) return ncclrun::result(streams.front()->push(function, argument));
  auto* meeting = new (std::nothrow) ncclrun::Meeting{streams.size(), ncclSuccess, function, argument};
  if (meeting == nullptr) return ncclrun::fail(ncclSystemError, "ncclrunStreamCallback: no memory");
  for (Stream* one : streams) {
    // A stream that cannot start its thread has nothing to wait for.
    if (!one->push(ncclrun::Meeting::arrive, meeting).ok()) ncclrun::Meeting::arrive(meeting, ncclSystemError);
  }
  return ncclSuccess;
}
