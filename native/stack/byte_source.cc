#include "stack/byte_source.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ncclrun::stack {

namespace {

// A damaged size must not cost memory that nothing is read into.
constexpr size_t kPiece = 1 << 20;

}  // namespace

std::vector<uint8_t> ByteSource::copy(uint64_t offset, size_t size) const {
  std::vector<uint8_t> bytes;
  while (bytes.size() < size) {
    const size_t before = bytes.size();
    const size_t wanted = std::min(size - before, kPiece);
    bytes.resize(before + wanted);
    const size_t got = readSome(offset + before, bytes.data() + before, wanted);
    bytes.resize(before + got);
    if (got < wanted) break;
  }
  return bytes;
}

FileSource::~FileSource() { close(fd_); }

size_t FileSource::readSome(uint64_t offset, void* out, size_t size) const {
  size_t done = 0;
  while (done < size) {
    const ssize_t got = pread(fd_, static_cast<char*>(out) + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

size_t PartSource::readSome(uint64_t offset, void* out, size_t size) const {
  if (offset >= size_) return 0;
  return whole_.readSome(start_ + offset, out, static_cast<size_t>(std::min<uint64_t>(size, size_ - offset)));
}

size_t SpanSource::readSome(uint64_t offset, void* out, size_t size) const {
  if (offset >= bytes_.size()) return 0;
  const size_t taken = static_cast<size_t>(std::min<uint64_t>(size, bytes_.size() - offset));
  memcpy(out, bytes_.data() + offset, taken);
  return taken;
}

}  // namespace ncclrun::stack
