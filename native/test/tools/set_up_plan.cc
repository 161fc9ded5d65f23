// set_up_plan FILE: what a host's ranks need before they connect to anybody, made from its HostPlan: the segment, the
// connections' tables, the sockets' and the proxies' threads. Prints "KiB THREADS DESCRIPTORS", by which this process
// has grown, and how many bytes of the segment are in use. test/native/large-plan.test.ts compares.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/descriptor.h"
#include "plan/plan_view.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;

namespace {

struct Use {
  long kibibytes = 0, threads = 0, descriptors = 0;
};

Use useNow() {
  Use use;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::sscanf(line.c_str(), "VmRSS: %ld", &use.kibibytes);
    std::sscanf(line.c_str(), "Threads: %ld", &use.threads);
  }
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) use.descriptors++;
  return use;
}

int setUp(const std::vector<std::byte>& blob) {
  PlanView view;
  if (const Status status = view.open(blob); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.sentence.c_str());
    return 1;
  }
  const Descriptor segment(makeSegment(view.header().segmentBytes));
  const Use before = useNow();
  std::vector<std::unique_ptr<Rank>> ranks;
  for (uint32_t rank = 0; rank < view.header().ranks; rank++) {
    if (view.peer(rank).host != view.header().hostIndex) continue;
    uint32_t port = 0;
    const int listener = makeListener(port);
    ranks.push_back(std::make_unique<Rank>(blob, dup(segment.get()), rank, listener));
  }
  const Use after = useNow();
  struct stat file {};
  if (fstat(segment.get(), &file) != 0) return 1;
  std::printf("%ld %ld %ld %ld\n", after.kibibytes - before.kibibytes, after.threads - before.threads,
              after.descriptors - before.descriptors, long(file.st_blocks) * 512);
  return failures();
}

}  // namespace

int main(int, char** argv) {
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  return setUp(std::vector<std::byte>(bytes, bytes + text.size()));
}
