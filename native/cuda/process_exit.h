// Threads that call the driver beside the program's own, and the exit of the process.
#pragma once
#include <mutex>

namespace ncclrun::cuda {

// Held during such calls, and for good once the process exits, because the driver is about to exit too.
std::timed_mutex& driverCalls();

}  // namespace ncclrun::cuda
