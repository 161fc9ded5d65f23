// ncclrun-unpack DIRECTORY: sent ahead to a host without ncclrun, it asks the launcher for the archive over stdin and
// stdout (launcher/remote/staging/protocol.ts), unpacks it into DIRECTORY and compares its hash, all in one process:
// the host's own tools take twice the time, and three times where only gzip is there.
//
// It ends with kCannotServe where it cannot serve, having said and taken nothing.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/frame.h"
#include "unpack/libraries.h"
#include "unpack/tar_reader.h"

namespace {

using ncclrun::FrameHeader;

// UnpackerStatus in protocol.ts
enum Status { kUnpacked = 0, kCannotServe = 1, kFailed = 2, kOtherHash = 3 };

// StagingMessage and ArchiveCompression in protocol.ts
constexpr uint16_t kWanted = 1;
constexpr uint16_t kNext = 2;
constexpr uint32_t kZstd = 1;

constexpr size_t kHashBytes = 32;
char input[128 << 10];
// As large as this, since the file system takes large pieces at a fraction of the cost of small ones.
char output[1 << 20];

int fail(const char* what, const char* reason) {
  dprintf(2, "%s: %s\n", what, reason);
  return kFailed;
}

bool sendMessage(uint16_t word, uint32_t subject) {
  const FrameHeader header = {.payloadBytes = 0,
                              .version = ncclrun::kFrameVersion,
                              .kind = static_cast<uint8_t>(ncclrun::FrameKind::staging),
                              .flags = word,
                              .subject = subject,
                              .request = 0};
  return write(1, &header, sizeof header) == sizeof header;
}

// 0 at the end of the stream.
size_t readSome(void* bytes, size_t size) {
  for (;;) {
    const ssize_t got = read(0, bytes, size);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) return 0;
  }
}

bool readAll(void* bytes, size_t size) {
  for (size_t have = 0; have < size;) {
    const size_t got = readSome(static_cast<char*>(bytes) + have, size - have);
    if (got == 0) return false;
    have += got;
  }
  return true;
}

bool readHeader(FrameHeader& header) {
  return readAll(&header, sizeof header) && header.version == ncclrun::kFrameVersion &&
         header.kind == static_cast<uint8_t>(ncclrun::FrameKind::staging);
}

struct Terms {
  unsigned pieces;
  char hash[2 * kHashBytes + 1];
};

// An empty line is a sign of life of a launcher that makes the archive.
bool readTerms(Terms& terms) {
  for (;;) {
    FrameHeader header = {};
    char text[256] = "";
    if (!readHeader(header) || header.payloadBytes >= sizeof text || !readAll(text, header.payloadBytes)) return false;
    if (strcmp(text, "\n") == 0) continue;
    return sscanf(text, "%u %*u %*u %64[0-9a-f]", &terms.pieces, terms.hash) == 2;
  }
}

class Unpacker {
 public:
  bool open() {
    if (!zstd_.open() || !digest_.open()) return false;
    stream_ = zstd_.createStream();
    context_ = digest_.createContext();
    return stream_ != nullptr && context_ != nullptr && digest_.begin(context_, digest_.sha256(), nullptr) == 1;
  }

  bool take(const char* bytes, size_t size) {
    digest_.update(context_, bytes, size);
    ncclrun::Zstd::Input from = {bytes, size, 0};
    // Until it has no more to give: what does not fit into the output stays inside the stream.
    for (bool full = false; full || from.position < from.size;) {
      ncclrun::Zstd::Output to = {output, sizeof output, filled_};
      const size_t result = zstd_.decompress(stream_, &to, &from);
      if (zstd_.isError(result)) {
        fail("the archive", zstd_.errorName(result));
        return false;
      }
      filled_ = to.position;
      full = filled_ == sizeof output;
      if (full && !flush()) return false;
    }
    return true;
  }

  bool flush() {
    const size_t filled = filled_;
    filled_ = 0;
    return tar_.take(output, filled);
  }

  bool ended() const { return tar_.ended(); }

  bool hashIs(const char* expected) {
    unsigned char hash[64];
    unsigned size = 0;
    digest_.end(context_, hash, &size);
    char text[2 * sizeof hash + 1] = "";
    for (unsigned index = 0; index < size; ++index) snprintf(text + 2 * index, 3, "%02x", hash[index]);
    return strcmp(text, expected) == 0;
  }

 private:
  ncclrun::Zstd zstd_;
  ncclrun::Digest digest_;
  ncclrun::TarReader tar_;
  void* stream_ = nullptr;
  void* context_ = nullptr;
  size_t filled_ = 0;
};

constinit Unpacker unpacker;

int unpack() {
  Terms terms = {};
  if (!sendMessage(kWanted, kZstd) || !readTerms(terms) || !sendMessage(kNext, 0))
    return fail("the archive", "the launcher left");
  for (unsigned piece = 0; piece < terms.pieces; ++piece) {
    FrameHeader header = {};
    if (!readHeader(header)) return fail("the archive", "the launcher left");
    // One is on its way while another is unpacked.
    if (piece + 1 < terms.pieces) sendMessage(kNext, 0);
    for (size_t left = header.payloadBytes; left > 0;) {
      const size_t got = readSome(input, left < sizeof input ? left : sizeof input);
      if (got == 0) return fail("the archive", "the launcher left");
      if (!unpacker.take(input, got)) return kFailed;
      left -= got;
    }
  }
  if (!unpacker.flush()) return kFailed;
  if (!unpacker.hashIs(terms.hash)) return kOtherHash;
  return unpacker.ended() ? kUnpacked : fail("the archive", "it has no end");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    dprintf(2, "ncclrun-unpack: this program is started by ncclrun, not by hand\n");
    return kFailed;
  }
  if (!unpacker.open()) return kCannotServe;
  if (chdir(argv[1]) < 0) return fail(argv[1], strerror(errno));
  return unpack();
}
