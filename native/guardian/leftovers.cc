#include "guardian/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <string>

#include "guardian/removal.h"

namespace ncclrun::guardian {
namespace {

// A directory is made a moment before it is locked.
constexpr time_t kOldSeconds = 3600;

// A crowded /tmp is not our business, and a rank may want its output read.
constexpr int kMaxEntries = 4096;
constexpr int kMaxRemoved = 32;  // directories, or some hundred entries of one

int openAndLock(const char* path) {
  const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return -1;
}

bool isOldAndOurs(int fd) {
  struct stat state = {};
  return fstat(fd, &state) == 0 && state.st_uid == geteuid() && time(nullptr) - state.st_mtime > kOldSeconds;
}

// What the names of all jobs' directories begin with: ours without the job's id and what makes it unique.
std::string commonBeginning(const std::string& name) {
  const size_t unique = name.rfind('-');
  const size_t id = unique == std::string::npos || unique == 0 ? unique : name.rfind('-', unique - 1);
  return id == std::string::npos ? "" : name.substr(0, id + 1);
}

}  // namespace

void lockRuntimeDirectory(const char* path) {
  openAndLock(path);  // stays open
}

void removeLeftovers(const char* runtimeDirectory) {
  const std::string path = runtimeDirectory;
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return;
  const std::string name = path.substr(slash + 1);
  const std::string beginning = commonBeginning(name);
  DIR* directory = beginning.empty() ? nullptr : opendir(path.substr(0, slash).c_str());
  if (directory == nullptr) return;
  int removed = 0;
  for (int seen = 0; seen < kMaxEntries && removed < kMaxRemoved; ++seen) {
    const dirent* entry = readdir(directory);
    if (entry == nullptr) break;
    if (strlen(entry->d_name) != name.size() || strncmp(entry->d_name, beginning.c_str(), beginning.size()) != 0 ||
        entry->d_name == name) {
      continue;
    }
    const std::string other = path.substr(0, slash + 1) + entry->d_name;
    const int fd = openAndLock(other.c_str());
    if (fd < 0) continue;
    if (isOldAndOurs(fd)) {
      Removal removal(other.c_str());
      while (removed < kMaxRemoved && removal.step()) ++removed;
      ++removed;
    }
    close(fd);
  }
  closedir(directory);
}

}  // namespace ncclrun::guardian
