// What this library calls itself.
#pragma once

namespace ncclrun {

// Version of ncclrun and a hash of the engine's sources, "0.1.0+1a2b3c4d".
const char* engineVersion();

}  // namespace ncclrun
