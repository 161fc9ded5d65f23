#include "stack/modules.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ncclrun::stack {
namespace {

// In the file system that the process sees. -1: it cannot be opened, or is no regular file: a device may block or act.
int openMapped(int pid, const std::string& path) {
  const std::string name = "/proc/" + std::to_string(pid) + "/root" + path;
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return -1;
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return fd;
  close(fd);
  return -1;
}

bool isDeleted(const std::string& path) { return path.ends_with(" (deleted)"); }

}  // namespace

const ElfImage* Modules::imageOf(int pid, const Mapping& mapping, const ByteSource& memory) {
  const bool isKernels = mapping.path == "[vdso]";
  if (!isKernels && (mapping.path.empty() || mapping.path[0] != '/')) return nullptr;
  if (isKernels || isDeleted(mapping.path)) {
    // Of a deleted file the first mapping holds the headers; others begin so many bytes behind it.
    const uint64_t start = mapping.start - mapping.offset;
    const auto [known, isNew] = inMemory_.try_emplace(start);
    if (isNew) known->second = ElfImage::open(std::make_unique<PartSource>(memory, start, mapping.end - start));
    return known->second.get();
  }
  const int fd = openMapped(pid, mapping.path);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) < 0) {
    if (fd >= 0) close(fd);
    return nullptr;
  }
  const auto [known, isNew] = files_.try_emplace(File{status.st_dev, status.st_ino});
  if (!isNew) {
    close(fd);
    return known->second.get();
  }
  known->second = ElfImage::open(std::make_unique<FileSource>(fd));
  return known->second.get();
}

CodePlace Modules::placeOf(int pid, const Mapping& mapping, uint64_t address, const ByteSource& memory) {
  const ElfImage* image = imageOf(pid, mapping, memory);
  if (image == nullptr) return {};
  const std::optional<uint64_t> place = image->addressAt(address - mapping.start + mapping.offset);
  return place ? CodePlace{image, *place} : CodePlace{};
}

}  // namespace ncclrun::stack
