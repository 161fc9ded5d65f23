// The verbs backend under the conformance suite. The ports of two cards are named by NCCLRUN_TEST_VERBS, for the
// sending and the receiving side: "rxa,::ffff:10.8.0.1 rxb,::ffff:10.8.0.2"; without it, those of the stand-in.
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <sstream>

#include "net/conformance.h"
#include "net/verbs/verbs_network.h"

using namespace ncclrun;

namespace {

net::VerbsPort portNamed(size_t index) {
  const char* const given = std::getenv("NCCLRUN_TEST_VERBS");
  std::istringstream words(given == nullptr ? "sia,::ffff:10.8.0.1 sib,::ffff:10.8.0.2" : given);
  std::string word;
  for (size_t i = 0; i <= index; i++) words >> word;
  const size_t comma = word.find(',');
  return {.card = word.substr(0, comma), .port = 1, .gid = word.substr(comma + 1)};
}

// Networks that were opened, in all processes: either side has one port, in turns.
std::atomic<size_t>* const opened =
    new (mmap(nullptr, sizeof *opened, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
        std::atomic<size_t>(0);

std::unique_ptr<net::Network> open(const net::VerbsTuning& tuning, const std::string& address) {
  net::VerbsConfig config{
      .ports = {portNamed((*opened)++ % 2)}, .address = address, .token = {1, 2, 3}, .tuning = tuning};
  std::unique_ptr<net::VerbsNetwork> made;
  const Status status = net::VerbsNetwork::make(config, made);
  if (!status.ok()) fprintf(stderr, "%s\n", status.sentence.c_str());
  return made;
}

test::Backend backend(const std::string& name, const net::VerbsTuning& tuning) {
  return {.name = name,
          .open = [tuning] { return open(tuning, "127.0.0.1"); },
          .openOnHost = [tuning](const std::string& own) { return open(tuning, own); }};
}

// Processes find each other's stand-in in a directory; it and what is in it are gone afterwards.
int runOverStandIn(const std::function<int()>& run) {
  std::string directory = std::filesystem::temp_directory_path() / "ncclrun-verbs-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return 1;
  setenv("NCCL_IBVERBS_LIB", NCCLRUN_TEST_VERBS, 1);
  setenv("STAND_IN_VERBS_DIR", directory.c_str(), 1);
  setenv("STAND_IN_VERBS", "reorder=1 device=sia device=sib", 0);
  const int status = run();
  std::filesystem::remove_all(directory);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const auto run = [&] {
    const net::VerbsTuning inTurn{.queuePairs = 4}, split{.queuePairs = 3, .splits = true};
    net::VerbsTuning adaptive = inTurn, splitAdaptive = split;
    adaptive.adaptiveRouting = splitAdaptive.adaptiveRouting = 1;
    splitAdaptive.adaptiveThreshold = 0;
    return test::runConformance(
        {backend("one queue pair", {}), backend("four queue pairs in turn", inTurn),
         backend("messages split over three queue pairs", split), backend("adaptive routing", adaptive),
         backend("adaptive routing of every message, split", splitAdaptive)},
        argc, argv);
  };
  return std::getenv("NCCLRUN_TEST_VERBS") != nullptr ? run() : runOverStandIn(run);
}
