#include "session.h"

#include <cstdlib>
#include <exception>

void must(ncclResult_t result) {
  if (result != ncclSuccess)
    throw EngineError(std::string(ncclGetErrorString(result)) + ": " + ncclGetLastError(nullptr));
}

Session::Session() {
  setenv("NCCLRUN_DEVICE", "host", 1);  // what is measured here lies in ordinary memory
  ncclUniqueId id;
  must(ncclrunGetJob(&id, &ranks_, &rank_));
  must(ncclCommInitRank(&comm_, ranks_, id, rank_));
  must(ncclrunStreamCreate(&stream_));
  ncclrunCommInfo info;
  must(ncclrunCommGetInfo(comm_, &info));
  hosts_ = static_cast<int>(info.hosts);
}

Session::~Session() {
  if (std::uncaught_exceptions() > 0) {
    ncclCommAbort(comm_);  // the others must not wait for us
  } else {
    ncclCommDestroy(comm_);
  }
  ncclrunStreamDestroy(stream_);
}

void Session::synchronize() { must(ncclrunStreamSynchronize(stream_)); }

void Session::barrier() {
  must(ncclrunBarrier(comm_, stream_));
  synchronize();
}

double Session::sum(double value) {
  must(ncclAllReduce(&value, &value, 1, ncclFloat64, ncclSum, comm_, stream()));
  synchronize();
  return value;
}

int64_t Session::sum(int64_t value) {
  must(ncclAllReduce(&value, &value, 1, ncclInt64, ncclSum, comm_, stream()));
  synchronize();
  return value;
}
