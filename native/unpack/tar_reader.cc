#include "unpack/tar_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ncclrun {

namespace {

// Offsets in a header: POSIX.1-1988, "ustar Interchange Format".
constexpr size_t kPathBytes = 100;
constexpr size_t kMode = 100;
constexpr size_t kSize = 124;
constexpr size_t kType = 156;

size_t least(size_t one, size_t other) { return one < other ? one : other; }

bool makeParents(char* path) {
  for (char* slash = strchr(path, '/'); slash != nullptr; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    const bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
    *slash = '/';
    if (!made) return false;
  }
  return true;
}

}  // namespace

bool TarReader::take(const char* bytes, size_t size) {
  const char* const end = bytes + size;
  while (bytes < end && !ended_) {
    const size_t left = static_cast<size_t>(end - bytes);
    if (contentBytes_ > 0) {
      const ssize_t written = write(file_, bytes, least(left, contentBytes_));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return fail(strerror(errno));
      bytes += written;
      contentBytes_ -= static_cast<size_t>(written);
      if (contentBytes_ == 0 && !endFile()) return false;
    } else if (paddingBytes_ > 0) {
      const size_t skipped = least(left, paddingBytes_);
      bytes += skipped;
      paddingBytes_ -= skipped;
    } else {
      const size_t taken = least(left, kBlockBytes - headerBytes_);
      memcpy(header_ + headerBytes_, bytes, taken);
      bytes += taken;
      headerBytes_ += taken;
      if (headerBytes_ == kBlockBytes && !beginFile()) return false;
    }
  }
  return true;
}

bool TarReader::beginFile() {
  headerBytes_ = 0;
  ended_ = header_[0] == '\0';
  if (ended_) return true;
  memcpy(path_, header_, kPathBytes);
  if (header_[kType] != '0' || path_[0] == '/' || strstr(path_, "..") != nullptr) return fail("not a file of ours");
  const mode_t mode = strtoul(header_ + kMode, nullptr, 8) & 0777;
  contentBytes_ = strtoul(header_ + kSize, nullptr, 8);
  paddingBytes_ = -contentBytes_ & (kBlockBytes - 1);
  if (!makeParents(path_)) return fail(strerror(errno));
  file_ = open(path_, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file_ < 0) return fail(strerror(errno));
  return contentBytes_ > 0 || endFile();
}

// Some file systems tell of a full disk or quota only here.
bool TarReader::endFile() { return close(file_) == 0 || fail(strerror(errno)); }

bool TarReader::fail(const char* what) {
  dprintf(2, "%s: %s\n", path_, what);
  return false;
}

}  // namespace ncclrun
