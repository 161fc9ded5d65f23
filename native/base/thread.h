// Threads of the engine: they take no signals (those are the program's) and have a name that a debugger shows.
#pragma once
#include <functional>
#include <thread>

namespace ncclrun {

// Throws std::system_error if the thread cannot be started. An exception that leaves `body` ends the process.
std::thread startThread(const char* name, std::function<void()> body);

}  // namespace ncclrun
