// The aggregators of a job, for the program that is one.
#include "abi/call.h"
#include "aggregator/process.h"
#include "ncclrun.h"

using namespace ncclrun;

NCCLRUN_EXPORT int ncclrunServeAggregator(int socket) {
  int status = 1;
  call("ncclrunServeAggregator", [&] {
    status = aggregator::serveProcess(socket);
    return ncclSuccess;
  });
  return status;
}
