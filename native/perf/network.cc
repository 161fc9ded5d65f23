#include "network.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "disturbance.h"
#include "session.h"

namespace {

constexpr unsigned kPluginSeconds = 10;

std::vector<uint64_t> sizesFrom(const std::string& text) {
  std::vector<uint64_t> sizes;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    char* end = nullptr;
    const uint64_t bytes = std::strtoul(word.c_str(), &end, 10);
    if (bytes == 0 || *end != '\0' || bytes > (uint64_t(1) << 30))
      throw std::invalid_argument("the size \"" + word + "\" is not a number from 1 to 2^30");
    sizes.push_back(bytes);
  }
  if (sizes.empty() || sizes.size() > NCCLRUN_NET_SIZES)
    throw std::invalid_argument(std::to_string(sizes.size()) + " sizes; 1 to " + std::to_string(NCCLRUN_NET_SIZES) +
                                " can be");
  return sizes;
}

std::string quoted(const char* text) {
  std::string out = "\"";
  for (; *text != '\0'; text++) {
    char escaped[8];
    if (*text == '"' || *text == '\\') {
      out += std::string("\\") + *text;
    } else if (static_cast<unsigned char>(*text) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(*text));
      out += escaped;
    } else {
      out += *text;
    }
  }
  return out + "\"";
}

void printNetwork(void*, const char* name, uint32_t hosts) {
  std::printf("{\"network\":%s,\"hosts\":%" PRIu32 "}\n", quoted(name).c_str(), hosts);
}

void printNics(const ncclrunNic* nics, size_t count) {
  std::printf("\"nics\":[");
  for (size_t i = 0; i < count; i++) {
    std::printf("%s{\"name\":%s,\"address\":%s,\"port\":%" PRIu32 ",\"speedMbps\":%" PRIu32 "}", i == 0 ? "" : ",",
                quoted(nics[i].name).c_str(), quoted(nics[i].address).c_str(), nics[i].port, nics[i].speedMbps);
  }
  std::printf("]}\n");
}

void printHost(void*, uint32_t index, const char* name, const ncclrunNic* nics, size_t count) {
  std::printf("{\"host\":%" PRIu32 ",\"name\":%s,", index, quoted(name).c_str());
  printNics(nics, count);
}

void printPair(void* argument, const ncclrunNetPair* pair) {
  const size_t sizes = static_cast<const std::vector<uint64_t>*>(argument)->size();
  std::printf("{\"from\":%" PRIu32 ",\"fromNic\":%" PRIu32 ",\"to\":%" PRIu32 ",\"toNic\":%" PRIu32 ",", pair->from,
              pair->fromNic, pair->to, pair->toNic);
  if (pair->error[0] != '\0') {
    std::printf("\"error\":%s}\n", quoted(pair->error).c_str());
  } else {
    std::printf("\"latencyUs\":%.3f,\"latency99Us\":%.3f,\"gigabytes\":[", pair->latencyUs, pair->latency99Us);
    for (size_t i = 0; i < sizes; i++) std::printf("%s%.4f", i == 0 ? "" : ",", pair->gigabytes[i]);
    std::printf("],\"retransmits\":%" PRId64 ",\"sentBytes\":%" PRIu64 ",\"error\":null}\n", pair->retransmits,
                pair->sentBytes);
  }
  std::fflush(stdout);
}

void printDisturbance(int rank, const Disturbance& before, const Disturbance& after) {
  std::printf("{\"rank\":%d,\"seconds\":%.6f,\"waitedSeconds\":%.6f,\"needlessPackets\":%" PRIu64 "}\n", rank,
              after.seconds - before.seconds, after.waitedSeconds - before.waitedSeconds,
              after.needlessPackets - before.needlessPackets);
  std::fflush(stdout);
}

void ignoreNetwork(void*, const char*, uint32_t) {}
void ignoreHost(void*, uint32_t, const char*, const ncclrunNic*, size_t) {}
void ignorePair(void*, const ncclrunNetPair*) {}

}  // namespace

void measureNetwork(const std::string& sizes, const std::string& nics, bool tellsDisturbance) {
  if (nics != "rail" && nics != "all") throw std::invalid_argument("unknown NICs \"" + nics + "\"; known: rail, all");
  std::vector<uint64_t> bytes = sizesFrom(sizes);
  ncclUniqueId id;
  int ranks = 0, rank = 0;
  must(ncclrunGetJob(&id, &ranks, &rank));
  const ncclrunNetListener printer = {
      .argument = &bytes, .network = printNetwork, .host = printHost, .pair = printPair};
  const ncclrunNetListener silent = {
      .argument = nullptr, .network = ignoreNetwork, .host = ignoreHost, .pair = ignorePair};
  const Disturbance before = disturbanceSoFar();
  must(ncclrunMeasureNetwork(bytes.data(), bytes.size(), nics == "all" ? 1 : 0, rank == 0 ? &printer : &silent));
  if (tellsDisturbance) printDisturbance(rank, before, disturbanceSoFar());
}

void printNetworkPlugin() {
  alarm(kPluginSeconds);  // a plugin may hang; the signal ends us, and our parent sees which one it was
  const ncclrunPluginListener printer = {
      .argument = nullptr,
      .passedOver = [](void*, const char* why) { std::printf("{\"passedOver\":%s}\n", quoted(why).c_str()); },
      .serves =
          [](void*, const char* name, const ncclrunNic* nics, size_t count) {
            std::printf("{\"name\":%s,", quoted(name).c_str());
            printNics(nics, count);
          }};
  if (ncclrunFindNetworkPlugin(&printer) != ncclSuccess)
    std::printf("{\"refused\":%s}\n", quoted(ncclGetLastError(nullptr)).c_str());
  std::fflush(stdout);
  _exit(0);  // whatever the plugin's own threads and destructors would do
}
