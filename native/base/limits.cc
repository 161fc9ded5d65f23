#include "base/limits.h"

#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <memory>

namespace ncclrun {
namespace {

std::string textOf(rlim_t value) { return value == RLIM_INFINITY ? "any number" : std::to_string(value); }

constexpr rlim_t kSpare = 64;  // for what the program and other libraries open

// The most that prepareOpenFiles() has asked for; 0: nothing.
std::atomic<rlim_t>& wanted() {
  static std::atomic<rlim_t> number{0};
  return number;
}

rlim_t openNow() {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir("/proc/self/fd"), &closedir);
  rlim_t count = 0;
  while (open != nullptr && readdir(open.get()) != nullptr) count++;
  return count;
}

std::string openFiles() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const std::string hard =
      files.rlim_max > files.rlim_cur ? " (hard limit " + textOf(files.rlim_max) + ")" : std::string();
  const rlim_t needed = wanted().load();
  const std::string number = needed > files.rlim_cur ? " and needs about " + std::to_string(needed) : std::string();
  return ": this process may open " + textOf(files.rlim_cur) + " files" + hard + number + "; raise it with ulimit -n";
}

}  // namespace

std::string limitBehind(int error) {
  if (error == EMFILE) return openFiles();
  if (error == ENFILE) return ": the machine has as many open files as it allows (sysctl fs.file-max)";
  if (error != EAGAIN) return "";
  rlimit processes{};
  getrlimit(RLIMIT_NPROC, &processes);
  return ": this user may have " + textOf(processes.rlim_cur) +
         " processes and threads; raise it with ulimit -u, or pids.max of the control group";
}

std::string portRange() {
  std::string text = "net.ipv4.ip_local_port_range";
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  unsigned first = 0, last = 0;
  if (file >> first >> last) text += ", " + std::to_string(first) + " to " + std::to_string(last);
  return text;
}

std::string portsBehind(int error) {
  if (error != EADDRINUSE && error != EADDRNOTAVAIL) return limitBehind(error);
  return ": no port is free among those that the system may choose (" + portRange() + "); widen the range with sysctl";
}

void prepareOpenFiles(unsigned long more) {
  const rlim_t needed = openNow() + more + kSpare;
  wanted().store(std::max<rlim_t>(wanted().load(), needed));
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= needed) return;
  files.rlim_cur = std::min(needed, files.rlim_max);
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace ncclrun
