#include "unpack/libraries.h"

#include <dlfcn.h>

namespace ncclrun {

namespace {

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

bool Zstd::open() {
  void* library = dlopen("libzstd.so.1", RTLD_NOW);
  return library != nullptr && find(library, "ZSTD_createDStream", createStream) &&
         find(library, "ZSTD_decompressStream", decompress) && find(library, "ZSTD_isError", isError) &&
         find(library, "ZSTD_getErrorName", errorName);
}

bool Digest::open() {
  void* library = dlopen("libcrypto.so.3", RTLD_LAZY);
  if (library == nullptr) library = dlopen("libcrypto.so.1.1", RTLD_LAZY);
  return library != nullptr && find(library, "EVP_MD_CTX_new", createContext) && find(library, "EVP_sha256", sha256) &&
         find(library, "EVP_DigestInit_ex", begin) && find(library, "EVP_DigestUpdate", update) &&
         find(library, "EVP_DigestFinal_ex", end);
}

}  // namespace ncclrun
