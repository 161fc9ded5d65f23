// A library opened at run time.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace ncclrun {

// Opens the library that the environment variable names, else `name`; null: it cannot be, `why` says so in a sentence
// without its end.
inline void* openLibrary(const char* name, const char* variable, std::string& why) {
  const char* const given = std::getenv(variable);
  const char* const path = given == nullptr || *given == '\0' ? name : given;
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    why = reason == nullptr ? std::string(path) + ": cannot be opened" : reason;
  }
  return library;
}

}  // namespace ncclrun
