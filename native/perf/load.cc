#include "load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

#include "memory.h"

namespace {

// What each rank tells the others.
struct Report {
  uint64_t machine;  // equal on ranks of one machine, whatever their hosts are called
  double ownSeconds;
  double busySeconds;
  double seconds;
  int64_t processors;
  char host[64];
};

std::string contentOf(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

double secondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Quotes and controls of a name, which JSON forbids, are left out.
std::string printable(std::string name) {
  std::erase_if(name, [](char one) { return one < ' ' || one > '~' || one == '"' || one == '\\'; });
  return name;
}

}  // namespace

LoadWatch::LoadWatch(Session& session) : session_(session) {
  session.barrier();
  began_ = now();
}

LoadWatch::Moment LoadWatch::now() {
  rusage own = {};
  getrusage(RUSAGE_SELF, &own);
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return {.machine = processorTimeOf(contentOf("/proc/stat"), sysconf(_SC_CLK_TCK)),
          .ownSeconds = secondsOf(own.ru_utime) + secondsOf(own.ru_stime),
          .seconds = std::chrono::duration<double>(since).count()};
}

std::vector<MachineLoad> LoadWatch::end() {
  session_.barrier();
  const Moment ended = now();
  Report mine = {};
  mine.machine = std::hash<std::string>()(contentOf("/proc/sys/kernel/random/boot_id"));
  mine.ownSeconds = ended.ownSeconds - began_.ownSeconds;
  mine.busySeconds = ended.machine.busySeconds - began_.machine.busySeconds;
  mine.seconds = ended.seconds - began_.seconds;
  mine.processors = ended.machine.processors;
  gethostname(mine.host, sizeof mine.host - 1);

  const auto ranks = static_cast<size_t>(session_.ranks());
  const Memory send(session_, sizeof mine);
  const Memory receive(session_, ranks * sizeof mine);
  session_.copy(send.data(), &mine, sizeof mine);
  must(ncclAllGather(send.data(), receive.data(), sizeof mine, ncclUint8, session_.comm(), session_.stream()));
  session_.synchronize();
  std::vector<Report> reports(ranks);
  session_.copy(reports.data(), receive.data(), ranks * sizeof mine);

  std::vector<MachineLoad> machines;
  std::vector<uint64_t> seen;
  for (const Report& first : reports) {
    if (first.processors == 0 || first.seconds <= 0 || std::count(seen.begin(), seen.end(), first.machine) > 0)
      continue;
    seen.push_back(first.machine);
    double own = 0;
    for (const Report& one : reports) own += one.machine == first.machine ? one.ownSeconds : 0;
    const double others = std::max(0.0, first.busySeconds - own) / first.seconds;
    machines.push_back({printable(first.host), static_cast<int>(first.processors), others});
  }
  return machines;
}

std::string loadLine(const std::vector<MachineLoad>& machines) {
  std::string line = "{\"load\":[";
  for (const MachineLoad& one : machines) {
    char text[192];
    std::snprintf(text, sizeof text, "%s{\"host\":\"%s\",\"processors\":%d,\"others\":%.2f}",
                  &one == machines.data() ? "" : ",", one.host.c_str(), one.processors, one.others);
    line += text;
  }
  return line + "]}\n";
}
