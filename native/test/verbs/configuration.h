// The devices that STAND_IN_VERBS describes (stand_in_verbs.h has its words).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interface.h"

namespace stand_in_verbs {

struct PortConfiguration {
  int link = kLinkEthernet;
  int state = 4;
  int mtu = 5;  // 256 << (mtu - 1) bytes
  int gbps = 100;
  int partitionKeys = 1;
  int lid = -1;  // -1: the device's number
  bool hasLinkLocal = true;
  bool hasVersion1 = false;
  std::vector<std::string> gids;
};

struct DeviceConfiguration {
  std::string name;
  std::string fabric;
  int openError = 0;
  uint32_t inlineBytes = 512;
  int workRequests = 16384;
  int completions = 65536;
  int scatter = 32;
  int queuePairs = 4000;
  std::vector<PortConfiguration> ports = std::vector<PortConfiguration>(1);
};

struct Configuration {
  uint64_t seed = 1;
  int fork = 2;
  uint64_t lockedBytes = UINT64_MAX;
  bool hasDmaBuf = false;
  bool retriesForever = false;
  bool reorders = false;
  bool cleansQueues = false;
  bool hasAccessEvent = false;
  std::pair<int, int> delay = {0, 0};  // microseconds
  std::vector<DeviceConfiguration> devices;
};

// Null if a word of the text is unknown or has no such value; `bad` is that word.
std::optional<Configuration> readConfiguration(std::string_view text, std::string& bad);

using Word = std::pair<std::string, std::string>;
// "key=value" for each word; the value is empty without '='.
std::vector<Word> splitWords(std::string_view text);
bool readNumber(const std::string& text, long& number);
bool readRange(const std::string& text, std::pair<int, int>& range);

// The addresses that a word after gid= stands for: of an interface as many as it has. None: it cannot be read.
std::vector<Gid> readGids(const std::string& text);

}  // namespace stand_in_verbs
