#include "net/double/behaviour.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>

namespace ncclrun::test::doubled {
namespace {

// Constant, because tables are made before the initializers of this file have run.
constexpr std::string_view kNames[] = {
    "null-comm",          // connect and accept yield nothing the first N times
    "null-request",       // isend and irecv yield nothing N times before each request
    "block-ms",           // connect and accept sleep N ms
    "accept-ms",          // accept sleeps N ms more
    "block-at",           // the Nth accept of all sleeps a minute more
    "no-sizes",           // test writes no sizes
    "wrong-sizes",        // test reports a size beyond the buffer
    "in-order",           // test of a request that is not the oldest fails
    "done-after",         // a request is done at its Nth test, at the earliest
    "other-first",        // every other request is complete only after the one behind it
    "lose",               // request N of a comm is never complete
    "test-error",         // the Nth test fails
    "strict-close",       // a comm that has not failed is closed with open requests: aborts
    "error-code",         // with this code; default: 6
    "device-memory",      // claims to register GPU memory; data is visible only after a flush
    "flush-at-once",      // a flush needs no request
    "flush-fails",        // with an error
    "no-flush",           // what is received into GPU memory is visible without one, and one aborts
    "force-flush",        // the properties ask for flushes
    "no-device-memory",   // registering it fails all the same
    "dma-buf",            // claims to register dma-bufs
    "no-dma-buf",         // registering one fails all the same
    "regions",            // a comm registers at most N regions
    "null-registration",  // registrations are null
    "no-devices",         // there are 0 devices
    "init-error",         // init fails with code N
    "card",               // the device is at PCI address 0000:NN:03.0, N being a bus
    "bad-properties",     // members are null, 0, out of range or not written
    "receives",           // maxRecvs; default: 8
    "max-bytes",          // maxP2pBytes
    "replace-table",      // init replaces the members of the table
    "garbage-log",        // log lines have arguments that nobody can read
    "coll-none",          // the collective network has 0 devices
    "coll-lacks",         // its table has init, devices and finalize alone
    "coll-init-error",    // its init fails with code N
    "coll-max-bytes",     // maxCollBytes
    "coll-float",         // it reduces 32-bit floats alone, and fails for other types
    "coll-fails",         // connect of member N, counted from 1, fails, when the group is complete
    "coll-null",          // connect of a group succeeds and makes none
    "coll-hosts-only",    // 1: groups do not register GPU memory, 2: they say so only when asked to
    "net-device",         // 1: properties, 2: connections ask for GPU kernels
};

bool isKnown(std::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

using Plan = std::map<std::string, long>;

Plan readPlan() {
  Plan plan;
  const char* const text = std::getenv("NCCLRUN_NET_DOUBLE");
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string word; std::getline(words, word, ',');) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (!isKnown(name)) broken(("NCCLRUN_NET_DOUBLE has no " + name).c_str());
    plan[name] = equals == std::string::npos ? 1 : std::stol(word.substr(equals + 1));
  }
  return plan;
}

struct Counts {
  std::mutex mutex;
  std::map<std::string, long> all;
};
Counts& counts() {
  static auto& only = *new Counts;
  return only;
}

}  // namespace

long planted(const char* name, long otherwise) {
  static const Plan& plan = *new Plan(readPlan());
  if (!isKnown(name)) broken(name);
  const auto found = plan.find(name);
  return found == plan.end() ? otherwise : found->second;
}

void count(const char* what, long by) {
  std::lock_guard lock(counts().mutex);
  counts().all[what] += by;
}

void broken(const char* rule) {
  std::fprintf(stderr, "network double: %s\n", rule);
  std::abort();
}

}  // namespace ncclrun::test::doubled

extern "C" [[gnu::visibility("default")]] long netDoubleCount(const char* what) {
  auto& counts = ncclrun::test::doubled::counts();
  std::lock_guard lock(counts.mutex);
  const auto found = counts.all.find(what);
  return found == counts.all.end() ? 0 : found->second;
}
