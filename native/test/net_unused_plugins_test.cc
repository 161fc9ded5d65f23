// Tuner and profiler plugins: named where they are asked for or exported, and never called.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/debug.h"
#include "net/plugin/unused_plugins.h"
#include "net/plugin_pair.h"

using namespace ncclrun::test;
using ncclrun::net::plugin::reportWishedPlugins;

namespace {

std::string otherPath(const char* kind) { return std::string(NCCLRUN_TEST_PLUGINS) + "/libnccl-" + kind + "-other.so"; }

// The lines that `body` logs at `level`.
template <typename Body>
std::string logged(const char* level, Body&& body) {
  char name[] = "/tmp/ncclrun-log-XXXXXX";
  const int file = mkstemp(name);
  EXPECT(file >= 0);
  close(file);
  setenv("NCCL_DEBUG", level, 1);
  setenv("NCCL_DEBUG_FILE", name, 1);
  ncclrun::resetDebug();
  body();
  std::stringstream text;
  text << std::ifstream(name).rdbuf();
  EXPECT(unlink(name) == 0);
  return text.str();
}

void expectWords(const std::string& text, const std::string& words) {
  if (text.find(words) == std::string::npos) failTest(__FILE__, __LINE__, "\"" + text + "\" has no \"" + words + "\"");
}
size_t linesOf(const std::string& text) { return size_t(std::count(text.begin(), text.end(), '\n')); }

std::string reported() { return logged("WARN", reportWishedPlugins); }

void nothingIsSaidOfWhatIsNotAskedFor() { EXPECT(reported().empty()); }
void nothingIsSaidOfNone() {
  setenv("NCCL_TUNER_PLUGIN", "none", 1);
  setenv("NCCL_PROFILER_PLUGIN", "", 1);
  EXPECT(reported().empty());
}
void aTunerIsNamedOnceWithItsVersions() {
  setenv("NCCL_TUNER_PLUGIN", otherPath("tuner").c_str(), 1);
  const std::string text = logged("WARN", [] {
    reportWishedPlugins();
    reportWishedPlugins();
  });
  expectWords(text, "NCCL WARN NCCL_TUNER_PLUGIN=" + otherPath("tuner") + ": " + otherPath("tuner") +
                        " exports ncclTunerPlugin_v2, ncclTunerPlugin_v5. ncclrun calls no tuner: its planner chooses");
  expectWords(text, "Unset NCCL_TUNER_PLUGIN, or set it to none");
  EXPECT(linesOf(text) == 1);
}
void aProfilerIsFoundByItsName() {
  setenv("NCCL_PROFILER_PLUGIN", "other", 1);
  const std::string text = reported();
  expectWords(text,
              "NCCL_PROFILER_PLUGIN=other: other exports ncclProfiler_v1, ncclProfiler_v4. ncclrun calls no "
              "profiler: ");
  EXPECT(linesOf(text) == 1);
}
void aLibraryThatIsNotThere() {
  setenv("NCCL_TUNER_PLUGIN", "nowhere", 1);
  expectWords(reported(),
              "NCCL_TUNER_PLUGIN=nowhere: nowhere: cannot open shared object file: No such file or "
              "directory; libnccl-tuner-nowhere.so: cannot open shared object file");
}
void aLibraryWithoutATuner() {
  setenv("NCCL_TUNER_PLUGIN", otherPath("profiler").c_str(), 1);
  expectWords(reported(), ": it exports none of ncclTunerPlugin_v2 to ncclTunerPlugin_v6. ncclrun calls no tuner");
}
void whatTheLibraryOfANetworkExportsIsNoWarning() {
  const auto open = [] {
    ncclrun::net::plugin::Plugin* plugin = nullptr;
    OK(openPlugin(pluginPath("with-others"), plugin));
    reportWishedPlugins();
  };
  const std::string text = logged("INFO", open);
  expectWords(text, "NCCL INFO network plugin Example (" + pluginPath("with-others") +
                        ") exports ncclTunerPlugin_v2, ncclTunerPlugin_v5, too: ncclrun calls no tuner");
  expectWords(text, "exports ncclProfiler_v1, ncclProfiler_v4, too: ncclrun calls no profiler");
  EXPECT(text.find(" WARN ") == std::string::npos);
}
void aNetworkAloneSaysNothingOfOthers() {
  const std::string text = logged("INFO", [] {
    ncclrun::net::plugin::Plugin* plugin = nullptr;
    OK(openPlugin(pluginPath("example"), plugin));
  });
  expectWords(text, "network plugin Example");
  EXPECT(text.find("uner") == std::string::npos && text.find("rofiler") == std::string::npos);
}

}  // namespace

int main() {
  bool isFine = true;
  // Found by name as foreign plugins are: the loader reads this variable when a program starts.
  if (std::getenv("LD_LIBRARY_PATH") == nullptr) {
    setenv("LD_LIBRARY_PATH", NCCLRUN_TEST_PLUGINS, 1);
    execl("/proc/self/exe", "net_unused_plugins_test", nullptr);
  }
#define RUN(body) isFine &= scenario(#body, body)
  RUN(nothingIsSaidOfWhatIsNotAskedFor);
  RUN(nothingIsSaidOfNone);
  RUN(aTunerIsNamedOnceWithItsVersions);
  RUN(aProfilerIsFoundByItsName);
  RUN(aLibraryThatIsNotThere);
  RUN(aLibraryWithoutATuner);
  RUN(whatTheLibraryOfANetworkExportsIsNoWarning);
  RUN(aNetworkAloneSaysNothingOfOthers);
  return isFine ? 0 : 1;
}
