// Network plugins: which are loaded and chosen, and what their devices are.
#include <signal.h>
#include <sys/stat.h>

#include <thread>

#include "nccl.h"
#include "net/plugin_pair.h"

using namespace ncclrun::test;
using ncclrun::Status;
using ncclrun::net::plugin::openPlugin;
using ncclrun::net::plugin::Plugin;
using ncclrun::net::plugin::select;
using ncclrun::net::plugin::Selection;
using ncclrun::net::plugin::Wish;

namespace {

bool contains(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

Wish wish(const std::string& libraries, const std::string& network = "") { return {libraries, network}; }

void nothingAskedForIsSilence() {
  Selection found;
  OK(select({}, 1, found));
  EXPECT(found.network == nullptr && found.names.empty() && found.reasons.empty());
  OK(select(wish("none"), 1, found));
  EXPECT(found.network == nullptr && found.reasons.empty());
}

void aMissingLibraryIsAnError() {
  Selection found;
  REFUSED(select(wish("nowhere"), 1, found), ncclSystemError, "libnccl-net-nowhere.so: cannot open shared object file");
  REFUSED(select(wish("./nowhere.so"), 1, found), ncclSystemError,
          "NCCL_NET_PLUGIN=./nowhere.so: ./nowhere.so: cannot open shared object file: No such file or directory. "
          "Correct NCCL_NET_PLUGIN");
  REFUSED(select(wish(pluginPath("double-none")), 1, found), ncclSystemError,
          "exports none of ncclNetPlugin_v6 to ncclNetPlugin_v12");
}

void anotherLibraryServesInstead() {
  Selection found;
  OK(select(wish("nowhere," + pluginPath("example") + ",none,nowhere"), 1, found));
  EXPECT(found.network != nullptr && found.network->name() == "Example");
  EXPECT(found.reasons.size() == 1 && contains(found.reasons[0], "libnccl-net-nowhere.so"));
  EXPECT(found.network->threadBound() && !found.network->devices().empty());
}

void aNameFindsItsLibrary() {
  Selection found;
  OK(select(wish("example"), 1, found));
  EXPECT(found.network != nullptr && found.network->name() == "Example");
  OK(select(wish("libnccl-net-example.so"), 1, found));
  EXPECT(found.network != nullptr);
}

void aNetworkIsChosenByName() {
  Selection found;
  const std::string both = pluginPath("double-v8") + "," + pluginPath("example");
  OK(select(wish(both, "eXAMPLE"), 1, found));
  EXPECT(found.network != nullptr && found.network->name() == "Example" && found.reasons.size() == 1);
  OK(select(wish(both, "Socket"), 1, found));
  EXPECT(found.network == nullptr && found.names == (std::vector<std::string>{"Double", "Example"}));
  EXPECT(contains(found.reasons[1], "is not the network that NCCL_NET=Socket asks for"));
}

void aForeignLibraryIsNotExecuted() {
  char name[] = "/tmp/ncclrun-plugin-XXXXXX";
  EXPECT(mkdtemp(name) != nullptr);
  const std::string copy = std::string(name) + "/libnccl-net-copy.so";
  EXPECT(std::system(("cp " + pluginPath("example") + " " + copy).c_str()) == 0);
  Plugin* plugin = nullptr;
  EXPECT(chmod(copy.c_str(), 0757) == 0);
  const Status status = openPlugin(copy, plugin);
  EXPECT(unlink(copy.c_str()) == 0 && rmdir(name) == 0);
  REFUSED(status, ncclSystemError, "is not executed, it may be another user's: others may write to");
}

void theNewestVersionIsTaken() {
  Plugin* plugin = nullptr;
  OK(openPlugin(pluginPath("double-all"), plugin));
  EXPECT(plugin->calls().version() == 12);
  OK(openPlugin(pluginPath("double-some"), plugin));
  EXPECT(plugin->calls().version() == 10);
  for (int version = 6; version <= 12; version++) {
    OK(openPlugin(pluginPath("double-v" + std::to_string(version)), plugin));
    EXPECT(plugin->calls().version() == version && plugin->name() == "Double");
  }
}

void devicesThatAreNotThere() {
  plant("no-devices");
  Selection found;
  OK(select(wish(pluginPath("double-v11") + "," + pluginPath("example")), 1, found));
  EXPECT(found.network != nullptr && found.network->name() == "Example");
  EXPECT(contains(found.reasons[0], "network plugin Double"));
  EXPECT(contains(found.reasons[0], "finds no device on this host; its last warning: no port is up"));
  EXPECT(counted(pluginPath("double-v11"), "finalize") == 1);
}

void aFailedInit() {
  plant("init-error=2");
  Selection found;
  OK(select(wish(pluginPath("double-v9")), 1, found));
  EXPECT(found.network == nullptr && found.reasons.size() == 1);
  EXPECT(contains(found.reasons[0], "init: system error (2); its last warning: no cable in port 3"));
  OK(select(wish(pluginPath("double-v9")), 2, found));
  EXPECT(counted(pluginPath("double-v9"), "init") == 1);  // the only one before version 11
}

void initIsCalledAsTheVersionWants() {
  for (const int version : {8, 11}) {
    Plugin* plugin = nullptr;
    const std::string path = pluginPath("double-v" + std::to_string(version));
    OK(openPlugin(path, plugin));
    {
      std::unique_ptr<ncclrun::net::Network> one, two;
      OK(makeNetwork(*plugin, 1, one));
      OK(makeNetwork(*plugin, 2, two));
    }
    EXPECT(counted(path, "init") == (version < 11 ? 1 : 2));
    EXPECT(counted(path, "finalize") == (version < 11 ? 0 : 2));
    EXPECT(counted(path, "devices") == 1);
  }
}

void propertiesAreClamped() {
  for (int version = 6; version <= 12; version++) {
    plant("bad-properties,receives=100");
    const Pair pair("double-v" + std::to_string(version));
    const ncclrun::net::Device& device = pair.network->devices()[0];
    EXPECT(device.name == "device0" && device.pciPath.empty() && device.speedMbps == 10'000);
    EXPECT(device.port == 0 && device.latencyUs == 0 && device.maxConnections == 65'536);
    EXPECT(device.maxReceives == 8 && device.maxMessageBytes == uint64_t(1) << 30);
    EXPECT(!device.forceFlush && !device.deviceMemory && !device.dmaBuf && !device.globalRegistrations);
  }
}

void aPluginForGpuKernelsIsRefused() {
  plant("net-device=1");
  Selection found;
  OK(select(wish(pluginPath("double-v7")), 1, found));
  EXPECT(found.network == nullptr && contains(found.reasons[0], "network device type 1"));
}

void aConnectionForGpuKernelsIsRefused() {
  plant("net-device=2");
  Pair pair("double-v9");
  Status status;
  while (status.ok()) status = pair.step();
  REFUSED(status, ncclInvalidUsage, "network device type 1");
}

void garbageInLogLines() {
  setenv("NCCL_DEBUG", "TRACE", 1);
  plant("garbage-log,init-error=3");
  Selection found;
  OK(select(wish(pluginPath("double-v12")), 1, found));
  EXPECT(contains(found.reasons[0], "no cable in port 3"));
}

}  // namespace

int main() {
  bool isFine = true;
  // Found by name as foreign plugins are: the loader reads this variable when a program starts.
  if (std::getenv("LD_LIBRARY_PATH") == nullptr) {
    setenv("LD_LIBRARY_PATH", NCCLRUN_TEST_PLUGINS, 1);
    execl("/proc/self/exe", "net_plugin_test", nullptr);
  }
#define RUN(body) isFine &= scenario(#body, body)
  RUN(nothingAskedForIsSilence);
  RUN(aMissingLibraryIsAnError);
  RUN(anotherLibraryServesInstead);
  RUN(aNameFindsItsLibrary);
  RUN(aNetworkIsChosenByName);
  RUN(aForeignLibraryIsNotExecuted);
  RUN(theNewestVersionIsTaken);
  RUN(devicesThatAreNotThere);
  RUN(aFailedInit);
  RUN(initIsCalledAsTheVersionWants);
  RUN(propertiesAreClamped);
  RUN(aPluginForGpuKernelsIsRefused);
  RUN(aConnectionForGpuKernelsIsRefused);
  RUN(garbageInLogLines);
  return isFine ? 0 : 1;
}
