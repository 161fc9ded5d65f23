// What every network backend must do (net/net.h), as one suite: a backend brings a factory and its traits, and has a
// program of about 15 lines:
//
//   int main(int argc, char** argv) { return ncclrun::test::runConformance({{"sockets", openSockets, {}}}, argc, argv);
//   }
//
// Each scenario has a sending and a receiving side, which run as two threads of one process, as two processes and, for
// a backend that says how, as processes of two hosts.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/net.h"

namespace ncclrun::test {

// What a backend may leave out.
struct BackendTraits {
  bool reportsSizes = true;       // test() of a receive reports what has come
  bool refusesTruncation = true;  // a message larger than its buffer is an error
  bool detectsExit = true;        // an open request fails when the peer's process is gone
  bool acceptsMany = true;        // several connections through one listener
  uint32_t outstanding = 256;     // requests that a connection takes before one is tested
  uint32_t connections = 64;      // at once
};

struct Backend {
  std::string name;
  // Called on each side; both sides' networks must reach each other. Null: the test has failed.
  std::function<std::unique_ptr<net::Network>()> open;
  BackendTraits traits = {};
  // The same on one of two hosts, 0 or 1, whose interface eth0 has an address of its own (net/hosts.h).
  std::function<std::unique_ptr<net::Network>(const std::string& address)> openOnHost = {};
};

// Runs all scenarios whose names contain the first argument (all without one) on every backend; 0 if all passed.
int runConformance(const std::vector<Backend>& backends, int argc, char** argv);

}  // namespace ncclrun::test
