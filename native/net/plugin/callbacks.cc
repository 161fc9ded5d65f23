#include "net/plugin/callbacks.h"

#include <array>
#include <cstdarg>
#include <cstdint>
#include <mutex>

#include "base/clock.h"
#include "base/debug.h"
#include "nccl.h"
#include "net/plugin/format.h"

namespace ncclrun::net::plugin {
namespace {

constexpr uint64_t kFresh = 5'000'000'000;  // ns

struct Warning {
  std::mutex mutex;
  std::string text;
  uint64_t written = 0;
};
Warning& warning() {
  static auto& only = *new Warning;  // never destroyed: threads of plugins outlive the program's exit handlers
  return only;
}

// NCCL's bits, in their order; those that ours lacks count as NET.
constexpr std::array kSubsystems = {Subsystem::init,      Subsystem::coll,  Subsystem::p2p,    Subsystem::shm,
                                    Subsystem::net,       Subsystem::graph, Subsystem::tuning, Subsystem::env,
                                    Subsystem::alloc,     Subsystem::call,  Subsystem::proxy,  Subsystem::net,
                                    Subsystem::bootstrap, Subsystem::reg};

Subsystem subsystemOf(unsigned long bits) {
  for (size_t i = 0; i < kSubsystems.size(); i++) {
    if ((bits >> i & 1) != 0) return kSubsystems[i];
  }
  return Subsystem::net;
}

// A plugin's line may end in a line feed.
std::string lineOf(const char* format, va_list arguments) {
  std::string line = formatGuarded(format, arguments);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return line;
}

void writeLine(int level, unsigned long subsystems, const char* format, va_list arguments) {
  if (level == abi::kLogWarn || level == abi::kLogAbort) {
    std::string line = lineOf(format, arguments);
    logWarning(line);
    std::lock_guard lock(warning().mutex);
    warning().text = std::move(line);
    warning().written = nowNanoseconds();
    return;
  }
  if (level == abi::kLogTrace ? !debugs(DebugLevel::trace) : !debugs(DebugLevel::info)) return;
  if (level <= abi::kLogNone || level > abi::kLogTrace) return;
  logInfo(lineOf(format, arguments), subsystemOf(subsystems));
}

void onLog(int level, unsigned long subsystems, const char* /*file*/, int /*line*/, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  try {
    writeLine(level, subsystems, format, arguments);
  } catch (...) {  // no memory for a line: the plugin is C, and goes on without it
  }
  va_end(arguments);
}

int onEvent(void** event, int what, void* /*parent*/, int64_t /*pluginId*/, void* /*descriptor*/) {
  if (what == 0 && event != nullptr) *event = nullptr;
  return ncclSuccess;
}

}  // namespace

abi::Log logCallback() { return &onLog; }
abi::Profiler profilerCallback() { return &onEvent; }

std::string lastWarning() {
  std::lock_guard lock(warning().mutex);
  return nowNanoseconds() - warning().written < kFresh ? warning().text : std::string();
}

void forgetWarning() {
  std::lock_guard lock(warning().mutex);
  warning().text.clear();
}

}  // namespace ncclrun::net::plugin
