// The network plugin of this host, without a communicator.
#pragma once
#include "base/error.h"
#include "ncclrun.h"

namespace ncclrun {

// As ncclrunFindNetworkPlugin (include/ncclrun.h).
Status findNetworkPlugin(const ncclrunPluginListener& listener);

}  // namespace ncclrun
