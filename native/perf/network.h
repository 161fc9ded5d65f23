// What `ncclrun perf net` measures: latency and bandwidth between the NICs of every two hosts.
#pragma once
#include <string>

// `sizes`: bytes of messages, with commas; `nics`: rail or all. Rank 0 writes a JSON object per line: the network, each
// host with its NICs, then each pair. `tellsDisturbance`: every rank writes what may have disturbed it, last. Throws
// std::invalid_argument for other words, EngineError.
void measureNetwork(const std::string& sizes, const std::string& nics, bool tellsDisturbance);

// Prints a JSON object per line, of the plugin that NCCL_NET_PLUGIN and NCCL_NET come to on this host: why one does not
// serve, then the one that does; or the sentence with which a job would end. Nothing: there is no plugin. Does not
// return. A plugin that takes longer than 10 s ends the process by SIGALRM.
[[noreturn]] void printNetworkPlugin();
