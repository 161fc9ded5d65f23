// Unpacks the archive that launcher/remote/staging/tar.ts writes, as its bytes come: ustar, regular files alone, below
// the current directory. What cannot be is said on stderr.
#pragma once
#include <stddef.h>

namespace ncclrun {

class TarReader {
 public:
  // False: said why.
  bool take(const char* bytes, size_t size);
  // The archive's own mark of its end was there.
  bool ended() const { return ended_; }

 private:
  static constexpr size_t kBlockBytes = 512;

  bool beginFile();
  bool endFile();
  bool fail(const char* what);

  char header_[kBlockBytes + 1] = "";  // a zero ends the last field, whatever is in it
  size_t headerBytes_ = 0;
  char path_[101] = "";
  int file_ = -1;
  size_t contentBytes_ = 0;
  size_t paddingBytes_ = 0;
  bool ended_ = false;
};

}  // namespace ncclrun
