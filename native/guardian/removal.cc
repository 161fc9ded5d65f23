#include "guardian/removal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ncclrun::guardian {
namespace {

constexpr int kEntriesOfStep = 256;

// Opens a directory that its owner may have locked against themselves (chmod 000). Null: errno says why.
DIR* openUnlocked(int directory, const char* name) {
  const int found = openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (found < 0) return nullptr;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", found);  // no name that could meanwhile be another's
  struct stat state = {};
  if (fstat(found, &state) == 0 && (state.st_mode & S_IRWXU) != S_IRWXU) chmod(path, S_IRWXU);
  const int fd = openat(found, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int error = errno;
  close(found);
  DIR* entries = fd < 0 ? nullptr : fdopendir(fd);
  if (entries == nullptr && fd >= 0) close(fd);
  if (fd < 0) errno = error;
  return entries;
}

bool isSelfOrParent(const char* name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

}  // namespace

Removal::Removal(const char* path) : path_(path), top_(openUnlocked(AT_FDCWD, path)) {
  if (top_ != nullptr) return;
  removed_ = errno == ENOENT;
  if (!removed_) fail(path_, errno);
}

Removal::~Removal() {
  if (inner_ != nullptr) closedir(inner_);
  if (top_ != nullptr) closedir(top_);
}

bool Removal::step() {
  for (int entries = 0; entries < kEntriesOfStep; ++entries) {
    if (top_ == nullptr || removed_) return false;
    if (!(inner_ != nullptr ? stepInner() : stepTop())) return false;
  }
  return true;
}

std::string Removal::error() const { return removed_ ? "" : error_.empty() ? path_ + ": not empty" : error_; }

bool Removal::stepTop() {
  const dirent* entry = readdir(top_);
  if (entry == nullptr) {
    removed_ = rmdir(path_.c_str()) == 0;
    if (removed_ || !progress_) {
      if (!removed_ && error_.empty()) fail(path_, errno);
      return false;
    }
    error_.clear();  // what was refused before may go now
    progress_ = false;
    rewinddir(top_);  // there may be what was moved up meanwhile
    return true;
  }
  if (isSelfOrParent(entry->d_name)) return true;
  if (removeEntry(dirfd(top_), entry->d_name))
    progress_ = true;
  else if (errno == ENOTEMPTY || errno == EEXIST)
    enter(entry->d_name);
  else
    fail(path_ + "/" + entry->d_name, errno);
  return true;
}

void Removal::enter(const char* name) {
  innerName_ = name;
  inner_ = openUnlocked(dirfd(top_), name);
  if (inner_ == nullptr) fail(path_ + "/" + name, errno);
}

bool Removal::stepInner() {
  const dirent* entry = readdir(inner_);
  if (entry == nullptr) {
    leave();
    return true;
  }
  if (isSelfOrParent(entry->d_name)) return true;
  if (removeEntry(dirfd(inner_), entry->d_name)) {
    progress_ = true;
    return true;
  }
  if (errno == ENOTEMPTY || errno == EEXIST) {
    if (moveUp(entry->d_name)) {
      progress_ = true;
      return true;
    }
  }
  fail(path_ + "/" + innerName_ + "/" + entry->d_name, errno);
  return true;
}

bool Removal::moveUp(const char* name) {
  char up[32];
  snprintf(up, sizeof up, ".moved-up-%llu", static_cast<unsigned long long>(moved_++));
  if (renameat(dirfd(inner_), name, dirfd(top_), up) == 0) return true;
  if (errno != EACCES) return false;
  // Moving a directory takes the right to write into it.
  if (DIR* unlocked = openUnlocked(dirfd(inner_), name); unlocked != nullptr) closedir(unlocked);
  return renameat(dirfd(inner_), name, dirfd(top_), up) == 0;
}

void Removal::leave() {
  closedir(inner_);
  inner_ = nullptr;
  if (unlinkat(dirfd(top_), innerName_.c_str(), AT_REMOVEDIR) == 0) progress_ = true;
}

// False: errno says why; ENOTEMPTY of a directory that is to be emptied first.
bool Removal::removeEntry(int directory, const char* name) {
  if (unlinkat(directory, name, 0) == 0) return true;
  const int error = errno;
  if (unlinkat(directory, name, AT_REMOVEDIR) == 0) return true;
  if (errno == ENOTDIR) errno = error;
  return false;
}

void Removal::fail(const std::string& what, int error) { error_ = what + ": " + strerror(error); }

}  // namespace ncclrun::guardian
