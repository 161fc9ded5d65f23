// ncclrun-aggregator: an aggregator of a job, which an agent starts.
#include "ncclrun.h"

namespace {
constexpr int kAgent = 3;  // the socket to it
}

int main() { return ncclrunServeAggregator(kAgent); }
