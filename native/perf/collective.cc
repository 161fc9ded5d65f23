#include "collective.h"

#include <stdexcept>

namespace {

size_t same(size_t count, int) { return count; }

constexpr Collective kCollectives[] = {
    {
        .name = "all_reduce",
        .reduces = true,
        .root = -1,
        .sendCount = same,
        .receiveCount = same,
        .busFactor = [](int ranks) { return 2.0 * (ranks - 1) / ranks; },
        .run =
            [](const Call& call) {
              return ncclAllReduce(call.send, call.receive, call.count, call.type, call.op, call.comm, call.stream);
            },
        .expected = [](const DataRule& rule, int, size_t count) { return reduction(rule, count); },
    },
};

}  // namespace

const Collective& collectiveNamed(const std::string& name) {
  std::string known;
  for (const Collective& collective : kCollectives) {
    if (name == collective.name) return collective;
    known += (known.empty() ? "" : ", ") + std::string(collective.name);
  }
  throw std::invalid_argument("unknown collective \"" + name + "\"; known: " + known);
}
