#include "guardian/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "guardian/byte_queue.h"

namespace ncclrun::guardian {
namespace {

// The numbers in a file of /proc, which are separated by spaces. False if it cannot be opened.
bool readChildren(const char* path, std::vector<pid_t>& out) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ByteQueue text;
  for (ssize_t got = 1; got > 0;) {
    got = read(fd, text.prepare(4096), 4096);
    if (got > 0) text.commit(static_cast<size_t>(got));
  }
  close(fd);
  text.append("", 1);
  char* end = nullptr;
  for (const char* at = text.data();; at = end) {
    const long pid = strtol(at, &end, 10);
    if (end == at) return true;
    out.push_back(static_cast<pid_t>(pid));
  }
}

// A thread's children are listed with the thread that made them.
void childrenOf(pid_t parent, std::vector<pid_t>& out) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", parent);
  DIR* threads = opendir(path);
  if (threads == nullptr) return;
  while (const dirent* thread = readdir(threads)) {
    if (!isdigit(static_cast<unsigned char>(thread->d_name[0]))) continue;
    char file[384];
    snprintf(file, sizeof file, "/proc/%d/task/%s/children", parent, thread->d_name);
    readChildren(file, out);
  }
  closedir(threads);
}

struct Process {
  pid_t pid;
  pid_t parent;
};

// Every process that we can see, for kernels without the children files.
std::vector<Process> allProcesses() {
  std::vector<Process> all;
  DIR* directory = opendir("/proc");
  if (directory == nullptr) return all;
  while (const dirent* entry = readdir(directory)) {
    const pid_t pid = atoi(entry->d_name);
    if (pid <= 0) continue;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    char text[512];
    const ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0) continue;
    text[got] = 0;
    const char* name = strrchr(text, ')');  // the name may hold anything, a parenthesis too
    pid_t parent = 0;
    if (name != nullptr && sscanf(name, ") %*c %d", &parent) == 1) all.push_back({pid, parent});
  }
  closedir(directory);
  return all;
}

std::vector<pid_t> descendants() {
  std::vector<pid_t> found;
  char own[64];
  snprintf(own, sizeof own, "/proc/self/task/%d/children", getpid());
  if (readChildren(own, found)) {
    for (size_t i = 0; i < found.size(); ++i) childrenOf(found[i], found);
    return found;
  }
  const std::vector<Process> all = allProcesses();
  found.push_back(getpid());
  for (size_t i = 0; i < found.size(); ++i) {
    for (const Process& process : all) {
      if (process.parent == found[i]) found.push_back(process.pid);
    }
  }
  found.erase(found.begin());
  return found;
}

}  // namespace

bool readStatus(pid_t pid, Survivor& out) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d", pid);
  struct stat owner = {};
  if (stat(path, &owner) < 0) return false;
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[512];
  const ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got <= 0) return false;
  text[got] = 0;
  const char* begin = strchr(text, '(');
  const char* end = strrchr(text, ')');  // the name may hold anything, a parenthesis too
  int threads = 0;
  char state = 0;
  // Fields 3 and 20 of proc(5).
  if (begin == nullptr || end == nullptr ||
      sscanf(end, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d", &state, &threads) != 2) {
    return false;
  }
  out = {.pid = pid, .user = owner.st_uid, .state = state, .command = std::string(begin + 1, end)};
  return (state != 'Z' && state != 'X') || threads > 1;  // a process whose first thread has ended looks like a zombie
}

Killed killDescendants() {
  Killed killed;
  // A pid read a moment ago can only be somebody else's by now if the kernel went once round all its numbers in
  // between.
  for (const pid_t pid : descendants()) {
    ++killed.found;
    if (kill(pid, SIGKILL) < 0 && errno == EPERM) ++killed.refused;
  }
  return killed;
}

std::vector<Survivor> survivingDescendants() {
  std::vector<Survivor> found;
  for (const pid_t pid : descendants()) {
    Survivor one = {};
    if (readStatus(pid, one)) found.push_back(one);
  }
  return found;
}

}  // namespace ncclrun::guardian
