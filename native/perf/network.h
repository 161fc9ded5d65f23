// What `ncclrun perf net` measures: latency and bandwidth between the NICs of every two hosts.
#pragma once
#include <string>

// `sizes`: bytes of messages, with commas; `nics`: rail or all. Rank 0 writes a JSON object per line: the network, each
// host with its NICs, then each pair. Throws std::invalid_argument for other words, EngineError.
void measureNetwork(const std::string& sizes, const std::string& nics);
