// ncclrun.h's host streams.
#include <memory>
#include <new>

#include "core/fork.h"
#include "core/stream.h"
#include "ncclrun.h"

#define NCCLRUN_EXPORT extern "C" __attribute__((visibility("default")))

struct ncclrunStream {
  ncclrun::Stream stream;
};

namespace ncclrun {
namespace {

// Lives until the process ends: threads may still use it while destructors run.
ncclrunStream& defaultStream() {
  static auto* const stream = new ncclrunStream;
  return *stream;
}

ncclResult_t refuseInChild() {
  if (!inForkedChild()) return ncclSuccess;
  return fail(ncclInvalidUsage,
              "this process was forked from one that uses ncclrun: it must exec a program before it can use streams");
}

ncclResult_t result(const Status& status) {
  return status.ok() ? ncclSuccess : fail(status.code, "%s", status.sentence.c_str());
}

}  // namespace

Stream& Stream::of(ncclrunStream_t handle) { return (handle != nullptr ? *handle : defaultStream()).stream; }

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
  return ncclrun::result(Stream::of(stream).synchronize());
}

NCCLRUN_EXPORT ncclResult_t ncclrunStreamQuery(ncclrunStream_t stream) {
  if (ncclResult_t refused = ncclrun::refuseInChild(); refused != ncclSuccess) return refused;
  return Stream::of(stream).idle() ? ncclSuccess : ncclInProgress;
}

NCCLRUN_EXPORT ncclResult_t ncclrunStreamCallback(ncclrunStream_t stream, void (*function)(void*, ncclResult_t),
                                                  void* argument) {
  if (function == nullptr) return ncclrun::fail(ncclInvalidArgument, "ncclrunStreamCallback: function is NULL");
  if (ncclResult_t refused = ncclrun::refuseInChild(); refused != ncclSuccess) return refused;
  return ncclrun::result(Stream::of(stream).push(function, argument));
}
