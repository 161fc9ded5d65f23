#include "watchdog/progress.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace ncclrun::watchdog {
namespace {

// False: it cannot be read.
bool readFile(pid_t pid, const char* name, char* text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t got = read(file, text, size - 1);
  close(file);
  text[got > 0 ? got : 0] = '\0';
  return got > 0;
}

}  // namespace

bool look(pid_t pid, Sample& out) {
  char text[1024];
  if (!readFile(pid, "stat", text, sizeof text)) return false;
  // The name, in parentheses, may have any character.
  const char* const rest = strrchr(text, ')');
  unsigned long faults = 0;
  unsigned long user = 0;
  unsigned long system = 0;
  // proc(5): state, nine numbers that do not matter, but for the eighth of them, majflt; utime, stime
  if (rest == nullptr ||
      sscanf(rest, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %lu %*u %lu %lu", &out.state, &faults, &user, &system) != 4) {
    return false;
  }
  out.majorFaults = faults;
  out.processorMs = (user + system) * 1000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  // Not every kernel counts what processes read.
  unsigned long long bytes = 0;
  out.readBytes = readFile(pid, "io", text, sizeof text) && sscanf(text, "rchar: %llu", &bytes) == 1 ? bytes : 0;
  return true;
}

Stall Progress::judge(const Sample& now, uint64_t elapsedMs) {
  const bool hasRead = now.majorFaults != last_.majorFaults || now.readBytes != last_.readBytes;
  const bool moved = hasRead || now.processorMs != last_.processorMs || now.state == 'R';
  last_ = now;
  if (hasRead) processorMsAtRead_ = now.processorMs;
  if (now.processorMs - processorMsAtRead_ >= processorLimitMs_) return Stall::looping;
  stillMs_ = moved ? 0 : stillMs_ + elapsedMs;
  if (stillMs_ < stillLimitMs_) return Stall::none;
  return now.state == 'T' || now.state == 't' ? Stall::stopped : Stall::waiting;
}

}  // namespace ncclrun::watchdog
