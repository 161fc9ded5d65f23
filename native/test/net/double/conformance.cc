// The conformance suite over network plugins: the double in every version of the interface, or the plugin whose path is
// the first argument.
#include "net/conformance.h"

#include <cstdio>
#include <string>

#include "net/plugin/backend.h"
#include "net/plugin/load.h"

namespace {

using ncclrun::Status;
using ncclrun::net::Network;
using ncclrun::net::plugin::Plugin;
using ncclrun::test::Backend;

constexpr uint64_t kCommunicator = 1;

std::unique_ptr<Network> open(const std::string& path) {
  Plugin* plugin = nullptr;
  std::unique_ptr<Network> network;
  Status status = openPlugin(path, plugin);
  if (status.ok()) status = makeNetwork(*plugin, kCommunicator, network);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.sentence.c_str());
  return network;
}

Backend backend(const std::string& name, const std::string& path, uint32_t outstanding) {
  Backend made{name, [path] { return open(path); }};
  made.traits.outstanding = outstanding;
  made.traits.connections = 16;
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "";
  if (path.find('/') != std::string::npos)
    return ncclrun::test::runConformance({backend("plugin", path, 8)}, argc - 1, argv + 1);
  std::vector<Backend> backends;
  for (int version = 6; version <= 12; version++) {
    const std::string name = "v" + std::to_string(version);
    const std::string library = NCCLRUN_TEST_PLUGINS "/libnccl-net-double-" + name + ".so";
    // How many requests the adapter lets a connection have.
    backends.push_back(backend(name, library, version < 8 ? 8 : 32));
  }
  return ncclrun::test::runConformance(backends, argc, argv);
}
