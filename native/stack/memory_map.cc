#include "stack/memory_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace ncclrun::stack {
namespace {

constexpr size_t kMaxMapsBytes = 16 << 20;

}  // namespace

std::string readText(const char* path, size_t maxBytes) {
  std::string text;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char some[16384];
  for (ssize_t got; text.size() < maxBytes && (got = read(fd, some, sizeof some)) > 0;)
    text.append(some, static_cast<size_t>(got));
  close(fd);
  return text;
}

std::vector<Mapping> parseMaps(std::string_view text) {
  std::vector<Mapping> maps;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
    unsigned long long start = 0;
    unsigned long long end = 0;
    unsigned long long offset = 0;
    char permissions[5] = {};
    int name = 0;
    if (sscanf(line.c_str(), "%llx-%llx %4s %llx %*x:%*x %*u %n", &start, &end, permissions, &offset, &name) != 4)
      continue;
    if (start >= end) continue;
    const std::string path = name > 0 && static_cast<size_t>(name) < line.size() ? line.substr(name) : std::string();
    maps.push_back({start, end, offset, permissions[2] == 'x', path});
  }
  return maps;
}

std::vector<Mapping> readMaps(int pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/maps", pid);
  return parseMaps(readText(path, kMaxMapsBytes));
}

const Mapping* mappingAt(const std::vector<Mapping>& maps, uint64_t address) {
  const auto after = std::upper_bound(maps.begin(), maps.end(), address,
                                      [](uint64_t value, const Mapping& mapping) { return value < mapping.start; });
  if (after == maps.begin()) return nullptr;
  const Mapping& mapping = *(after - 1);
  return address < mapping.end ? &mapping : nullptr;
}

}  // namespace ncclrun::stack
