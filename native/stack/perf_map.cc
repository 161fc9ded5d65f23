#include "stack/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "stack/memory_map.h"

namespace ncclrun::stack {
namespace {

constexpr size_t kMaxBytes = 64 << 20;
constexpr size_t kMaxStatusBytes = 8192;

// As the process itself numbers it, in its namespace.
int ownNumber(int process) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/status", process);
  const std::string status = readText(path, kMaxStatusBytes);
  const size_t at = status.find("\nNSpid:");
  if (at == std::string::npos) return process;
  const size_t end = status.find('\n', at + 1);
  const size_t last = status.find_last_of("\t ", end);
  return last == std::string::npos ? process : atoi(status.c_str() + last + 1);
}

}  // namespace

PerfMap PerfMap::of(int process) {
  char path[128];
  struct stat owner;
  snprintf(path, sizeof path, "/proc/%d", process);
  if (stat(path, &owner) < 0) return {};
  snprintf(path, sizeof path, "/proc/%d/root/tmp/perf-%d.map", process, ownNumber(process));
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return {};
  struct stat status;
  std::string text;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == owner.st_uid) {
    text.resize(std::min(static_cast<size_t>(status.st_size), kMaxBytes));
    const ssize_t got = pread(fd, text.data(), text.size(), 0);
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  }
  close(fd);
  return PerfMap(text);
}

PerfMap::PerfMap(std::string_view text) {
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
    unsigned long long start = 0;
    unsigned long long size = 0;
    int name = 0;
    if (sscanf(line.c_str(), "%llx %llx %n", &start, &size, &name) != 2 || name == 0) continue;
    entries_.push_back({start, size, line.substr(static_cast<size_t>(name))});
  }
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& one, const Entry& other) { return one.start < other.start; });
}

std::string PerfMap::nameAt(uint64_t address) const {
  const auto after = std::upper_bound(entries_.begin(), entries_.end(), address,
                                      [](uint64_t value, const Entry& entry) { return value < entry.start; });
  if (after == entries_.begin()) return {};
  const Entry& entry = *(after - 1);
  return address - entry.start < entry.size ? entry.name : std::string();
}

}  // namespace ncclrun::stack
