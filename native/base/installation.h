// What of ncclrun's installation lies around this library.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"

namespace ncclrun {

struct Installation {
  std::string library;  // this one, HOME/build/libnccl.so.2
  std::string node;     // the Node that runs ncclrun there, as bin/ncclrun finds it; NCCLRUN_NODE stands above it
  std::vector<std::string> options;  // of that Node: quiet, and without a debugger for SIGUSR1
  std::string agent;                 // HOME/dist/bundle/agent.cjs
};

// The directory that this library lies in; empty: its file has gone.
std::string libraryDirectory();

// An error names every path that was tried.
Status findInstallation(Installation& out);

}  // namespace ncclrun
