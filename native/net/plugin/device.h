// A plugin's description of a device, as ours: careless plugins leave members unset or out of range.
#pragma once
#include "net/net.h"
#include "net/plugin/adapt.h"

namespace ncclrun::net::plugin {

Device deviceOf(const NewestProperties& properties, int index, bool hasDmaBuf);

}  // namespace ncclrun::net::plugin
