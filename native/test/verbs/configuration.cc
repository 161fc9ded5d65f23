#include "configuration.h"

#include <arpa/inet.h>
#include <ifaddrs.h>

#include <cstdlib>
#include <cstring>

namespace stand_in_verbs {
namespace {

Gid fromIpv4(const in_addr& address) {
  Gid gid = {};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw + 12, &address, 4);
  return gid;
}

// Writes the number of `text` to any integer field.
template <typename Field>
bool readInto(const std::string& text, Field& field) {
  long number = 0;
  if (!readNumber(text, number)) return false;
  field = static_cast<Field>(number);
  return true;
}

bool readMtu(const std::string& text, int& code) {
  long bytes = 0;
  if (!readNumber(text, bytes)) return false;
  for (code = 1; code <= 5; ++code) {
    if (128l << code == bytes) return true;
  }
  return false;
}

bool readOne(const std::string& value, const std::string& first, const std::string& second, int& field, int one,
             int two) {
  if (value != first && value != second) return false;
  field = value == first ? one : two;
  return true;
}

bool readPortWord(const Word& word, PortConfiguration& port) {
  const auto& [key, value] = word;
  if (key == "link") return readOne(value, "ib", "ethernet", port.link, kLinkInfiniBand, kLinkEthernet);
  if (key == "state" && value == "init") return (port.state = 2) == 2;
  if (key == "state") return readOne(value, "active", "down", port.state, 4, 1);
  if (key == "mtu") return readMtu(value, port.mtu);
  if (key == "gbps") return readInto(value, port.gbps);
  if (key == "pkeys") return readInto(value, port.partitionKeys);
  if (key == "lid") return readInto(value, port.lid);
  if (key == "linklocal") return readInto(value, port.hasLinkLocal);
  if (key == "roce") return readInto(value, port.hasVersion1);
  if (key != "gid" || readGids(value).empty()) return false;
  port.gids.push_back(value);
  return true;
}

bool readDeviceWord(const Word& word, DeviceConfiguration& device) {
  const auto& [key, value] = word;
  if (key == "fabric") {
    device.fabric = value;
    return true;
  }
  if (key == "open") return readInto(value, device.openError);
  if (key == "inline") return readInto(value, device.inlineBytes);
  if (key == "wr") return readInto(value, device.workRequests);
  if (key == "cqe") return readInto(value, device.completions);
  if (key == "sge") return readInto(value, device.scatter);
  if (key == "qps") return readInto(value, device.queuePairs);
  return false;
}

bool readLibraryWord(const Word& word, Configuration& all) {
  const auto& [key, value] = word;
  if (key == "seed") return readInto(value, all.seed);
  if (key == "fork") return readInto(value, all.fork);
  if (key == "memlock") return readInto(value, all.lockedBytes);
  if (key == "dmabuf") return readInto(value, all.hasDmaBuf);
  if (key == "clean") return readInto(value, all.cleansQueues);
  if (key == "access-event") return readInto(value, all.hasAccessEvent);
  if (key == "reorder") return readInto(value, all.reorders);
  if (key == "delay") return readRange(value, all.delay);
  if (key == "retry7") return all.retriesForever = value == "forever";
  return false;
}

}  // namespace

std::vector<Word> splitWords(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n;";
  std::vector<Word> words;
  for (size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos;) {
    const std::string word(text.substr(at, text.find_first_of(kBetween, at) - at));
    const size_t equals = word.find('=');
    words.emplace_back(word.substr(0, equals), equals == std::string::npos ? "" : word.substr(equals + 1));
    at = text.find_first_not_of(kBetween, at + word.size());
  }
  return words;
}

bool readNumber(const std::string& text, long& number) {
  char* end = nullptr;
  number = std::strtol(text.c_str(), &end, 0);
  return !text.empty() && *end == '\0' && number >= 0;
}

bool readRange(const std::string& text, std::pair<int, int>& range) {
  const size_t dash = text.find('-');
  long low = 0, high = 0;
  if (dash == std::string::npos || !readNumber(text.substr(0, dash), low) || !readNumber(text.substr(dash + 1), high)) {
    return false;
  }
  range = {static_cast<int>(low), static_cast<int>(high)};
  return low <= high;
}

std::vector<Gid> readGids(const std::string& text) {
  if (text.rfind("net:", 0) == 0) {
    std::vector<Gid> gids;
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return gids;
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || text.substr(4) != one->ifa_name) continue;
      sockaddr_in address;
      std::memcpy(&address, one->ifa_addr, sizeof address);
      gids.push_back(fromIpv4(address.sin_addr));
    }
    freeifaddrs(all);
    return gids;
  }
  in_addr ipv4;
  if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) return {fromIpv4(ipv4)};
  Gid gid;
  if (inet_pton(AF_INET6, text.c_str(), gid.raw) == 1) return {gid};
  return {};
}

std::optional<Configuration> readConfiguration(std::string_view text, std::string& bad) {
  Configuration all;
  bool hasNone = false;
  for (const Word& word : splitWords(text)) {
    bool isRead = true;
    if (word.first == "device") {
      all.devices.push_back({.name = word.second, .fabric = {}});
      isRead = !word.second.empty() && word.second.size() < sizeof(Device::name);
    } else if (word.first == "devices") {
      isRead = hasNone = word.second == "0";
    } else if (all.devices.empty()) {
      isRead = readLibraryWord(word, all);
    } else if (word.first == "port") {
      std::vector<PortConfiguration>& ports = all.devices.back().ports;
      long number = 0;
      isRead = readNumber(word.second, number) && number == static_cast<long>(ports.size()) + 1;
      if (isRead) ports.push_back({});
    } else {
      isRead = readDeviceWord(word, all.devices.back()) || readPortWord(word, all.devices.back().ports.back());
    }
    if (isRead) continue;
    bad = word.first + "=" + word.second;
    return std::nullopt;
  }
  if (all.devices.empty() && !hasNone) all.devices = {{.name = "sia", .fabric = {}}, {.name = "sib", .fabric = {}}};
  return all;
}

}  // namespace stand_in_verbs
