// What the unpacker takes from the host's own libraries, opened at run time: every sshd brings libcrypto, systemd's
// brings libzstd. So we need no headers where we are built, and are small enough to travel ahead of the archive.
// Signatures: zstd.h (stable since 1.0), openssl/evp.h (since 1.1).
#pragma once
#include <stddef.h>

namespace ncclrun {

struct Zstd {
  // ZSTD_inBuffer and ZSTD_outBuffer
  struct Input {
    const void* bytes;
    size_t size;
    size_t position;
  };
  struct Output {
    void* bytes;
    size_t size;
    size_t position;
  };
  void* (*createStream)() = nullptr;
  // 0 at the end of a zstd frame; another may follow.
  size_t (*decompress)(void* stream, Output*, Input*) = nullptr;
  unsigned (*isError)(size_t) = nullptr;
  const char* (*errorName)(size_t) = nullptr;

  bool open();
};

struct Digest {
  void* (*createContext)() = nullptr;
  const void* (*sha256)() = nullptr;
  int (*begin)(void* context, const void* type, void* engine) = nullptr;
  int (*update)(void* context, const void* bytes, size_t size) = nullptr;
  int (*end)(void* context, unsigned char* digest, unsigned* size) = nullptr;

  bool open();
};

}  // namespace ncclrun
