// A library opened at run time.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "base/trusted_path.h"

namespace ncclrun {

// Opens the library that the environment variable names, else `name`; null: it cannot be, `why` says so in a sentence
// without its end. A path of the variable is executed only where nobody else can have written it.
inline void* openLibrary(const char* name, const char* variable, std::string& why) {
  const char* const given = std::getenv(variable);
  std::string path = given == nullptr || *given == '\0' ? name : given;
  if (path.find('/') != std::string::npos) path = executablePath(path, why);
  if (path.empty()) return nullptr;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    why = reason == nullptr ? path + ": cannot be opened" : reason;
  }
  return library;
}

}  // namespace ncclrun
