#include "base/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace ncclrun {
namespace {

std::vector<std::string> directories() {
  std::vector<std::string> all;
  for (const char* variable : {"XDG_RUNTIME_DIR", "/dev/shm", "TMPDIR", "/tmp", "/var/tmp"}) {
    const char* const path = *variable == '/' ? variable : std::getenv(variable);
    if (path != nullptr && *path == '/') all.emplace_back(path);
  }
  return all;
}

// Never has a name where the file system can do that, else one for a moment.
Descriptor unnamedFile(const std::string& directory) {
  Descriptor file(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.valid() || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return file;
  std::string path = directory + "/ncclrun-XXXXXX";
  file.reset(mkostemp(path.data(), O_CLOEXEC));
  if (file.valid()) unlink(path.c_str());
  return file;
}

}  // namespace

SharedFile makeSharedFile(const char* name) {
  SharedFile made;
  made.descriptor.reset(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  made.seals = made.descriptor.valid();
  if (made.seals) return made;
  made.error = errno;
  made.why = std::string("memfd_create: ") + std::strerror(made.error);
  // Other errors, a want of descriptors or memory, other files would meet too.
  if (made.error != EPERM && made.error != ENOSYS && made.error != EACCES) return made;
  for (const std::string& directory : directories()) {
    made.descriptor = unnamedFile(directory);
    if (made.descriptor.valid()) return made;
    made.why += "; a file in " + directory + ": " + std::strerror(errno);
  }
  return made;
}

}  // namespace ncclrun
