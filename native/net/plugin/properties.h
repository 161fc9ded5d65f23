// A device's properties, of any version of the interface, as the newest version has them.
#pragma once
#include "net/plugin/table_calls.h"

namespace ncclrun::net::plugin {

// What older versions do not have.
NewestProperties defaultProperties(int device);

// `out` has the default properties.
void copyProperties(const abi::PropertiesV6& from, NewestProperties& out);
void copyProperties(const abi::PropertiesV7& from, NewestProperties& out);
void copyProperties(const abi::PropertiesV8& from, NewestProperties& out);
void copyProperties(const abi::PropertiesV9& from, NewestProperties& out);
void copyProperties(const abi::PropertiesV11& from, NewestProperties& out);
void copyProperties(const abi::PropertiesV12& from, NewestProperties& out);

}  // namespace ncclrun::net::plugin
