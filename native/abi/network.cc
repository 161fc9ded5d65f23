// The networks of a job or host, for programs that measure or show them.
#include <span>
#include <string>
#include <vector>

#include "abi/call.h"
#include "communicator/find_network_plugin.h"
#include "communicator/measure_network.h"
#include "ncclrun.h"

using namespace ncclrun;

NCCLRUN_EXPORT ncclResult_t ncclrunMeasureNetwork(const uint64_t* sizes, size_t count, int allNics,
                                                  const ncclrunNetListener* listener) {
  constexpr const char* kName = "ncclrunMeasureNetwork";
  return call(kName, [&] {
    if (const auto bad = checkPointer(kName, "listener", listener); bad != ncclSuccess) return bad;
    if (count > NCCLRUN_NET_SIZES || (count > 0 && sizes == nullptr))
      return fail(ncclInvalidArgument, "%s: %zu sizes; up to %d can be", kName, count, NCCLRUN_NET_SIZES);
    const Status status = measureNetwork({sizes, count}, allNics != 0, *listener);
    return status.ok() ? ncclSuccess : fail({status.code, std::string(kName) + ": " + status.sentence});
  });
}

NCCLRUN_EXPORT ncclResult_t ncclrunFindNetworkPlugin(const ncclrunPluginListener* listener) {
  constexpr const char* kName = "ncclrunFindNetworkPlugin";
  return call(kName, [&] {
    if (const auto bad = checkPointer(kName, "listener", listener); bad != ncclSuccess) return bad;
    return result(findNetworkPlugin(*listener));
  });
}
