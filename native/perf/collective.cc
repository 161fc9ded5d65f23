#include "collective.h"

#include <stdexcept>

namespace {

double whole(int) { return 1; }
double othersShare(int ranks) { return static_cast<double>(ranks - 1) / ranks; }

// In the order of plan::Collective.
constexpr Collective kCollectives[] = {
    {.name = "all_reduce",
     .reduces = true,
     .busFactor = [](int ranks) { return 2 * othersShare(ranks); },
     .run =
         [](const Call& call) {
           return ncclAllReduce(call.send, call.receive, call.count, call.type, call.op, call.comm, call.stream);
         },
     .expected = [](const DataRule& rule, int, int, int, size_t count) { return reduction(rule, 0, count); }},
    {.name = "all_gather",
     .receives = Extent::perRank,
     .busFactor = othersShare,
     .run =
         [](const Call& call) {
           return ncclAllGather(call.send, call.receive, call.count, call.type, call.comm, call.stream);
         },
     .expected = [](const DataRule& rule, int, int, int part,
                    size_t count) { return contribution(rule, part, 0, count); }},
    {.name = "reduce_scatter",
     .reduces = true,
     .sends = Extent::perRank,
     .busFactor = othersShare,
     .run =
         [](const Call& call) {
           return ncclReduceScatter(call.send, call.receive, call.count, call.type, call.op, call.comm, call.stream);
         },
     .expected = [](const DataRule& rule, int, int rank, int, size_t count) { return reduction(rule, rank, count); }},
    {.name = "broadcast",
     .hasRoot = true,
     .busFactor = whole,
     .run =
         [](const Call& call) {
           return ncclBroadcast(call.send, call.receive, call.count, call.type, call.root, call.comm, call.stream);
         },
     .expected = [](const DataRule& rule, int root, int, int,
                    size_t count) { return contribution(rule, root, 0, count); }},
    {.name = "reduce",
     .reduces = true,
     .hasRoot = true,
     .onlyRootReceives = true,
     .busFactor = whole,
     .run =
         [](const Call& call) {
           return ncclReduce(call.send, call.receive, call.count, call.type, call.op, call.root, call.comm,
                             call.stream);
         },
     .expected = [](const DataRule& rule, int, int, int, size_t count) { return reduction(rule, 0, count); }},
    {.name = "alltoall",
     .sends = Extent::perRank,
     .receives = Extent::perRank,
     .busFactor = othersShare,
     .run =
         [](const Call& call) {
           return ncclAlltoAll(call.send, call.receive, call.count, call.type, call.comm, call.stream);
         },
     .expected = [](const DataRule& rule, int, int rank, int part,
                    size_t count) { return contribution(rule, part, rank, count); }},
    {.name = "gather",
     .hasRoot = true,
     .receives = Extent::perRank,
     .onlyRootReceives = true,
     .busFactor = othersShare,
     .run =
         [](const Call& call) {
           return ncclGather(call.send, call.receive, call.count, call.type, call.root, call.comm, call.stream);
         },
     .expected = [](const DataRule& rule, int, int, int part,
                    size_t count) { return contribution(rule, part, 0, count); }},
    {.name = "scatter",
     .hasRoot = true,
     .sends = Extent::perRank,
     .busFactor = othersShare,
     .run =
         [](const Call& call) {
           return ncclScatter(call.send, call.receive, call.count, call.type, call.root, call.comm, call.stream);
         },
     .expected = [](const DataRule& rule, int root, int rank, int,
                    size_t count) { return contribution(rule, root, rank, count); }},
    {.name = "sendrecv",
     .hasInPlace = false,  // a buffer would be sent while it is received into
     .busFactor = whole,
     .run =
         [](const Call& call) {
           const int next = (call.rank + 1) % call.ranks;
           const int previous = (call.rank + call.ranks - 1) % call.ranks;
           ncclResult_t result = ncclGroupStart();
           if (result == ncclSuccess) result = ncclSend(call.send, call.count, call.type, next, call.comm, call.stream);
           if (result == ncclSuccess)
             result = ncclRecv(call.receive, call.count, call.type, previous, call.comm, call.stream);
           const ncclResult_t ended = ncclGroupEnd();
           return result == ncclSuccess ? ended : result;
         },
     .expected = [](const DataRule& rule, int, int rank, int,
                    size_t count) { return contribution(rule, (rank + rule.ranks - 1) % rule.ranks, 0, count); }},
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

uint32_t planNumber(const Collective& collective) { return static_cast<uint32_t>(&collective - kCollectives); }
