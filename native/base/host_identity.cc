#include "base/host_identity.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/fnv.h"
#include "base/variables.h"

namespace ncclrun {

const std::string& bootId() {
  static const auto& id = *new std::string([] {
    std::string line;
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::getline(file, line);
    return line;
  }());
  return id;
}

uint64_t hostIdentity() {
  Fnv hash;
  if (const char* given = ncclVariable("NCCL_HOSTID"); given != nullptr && *given != '\0') {
    hash.add(given);
  } else {
    char name[HOST_NAME_MAX + 1] = {};
    gethostname(name, HOST_NAME_MAX);
    hash.add(name);
    hash.add(bootId());
  }
  char network[64];
  const ssize_t length = readlink("/proc/self/ns/net", network, sizeof network);
  if (length > 0) hash.add(network, static_cast<size_t>(length));
  return hash.value() == 0 ? 1 : hash.value();
}

}  // namespace ncclrun
