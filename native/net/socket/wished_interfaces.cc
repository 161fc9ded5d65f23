#include "net/socket/wished_interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/variables.h"

namespace ncclrun::net {
namespace {

constexpr const char* kNames = "NCCL_SOCKET_IFNAME";
constexpr const char* kFamily = "NCCL_SOCKET_FAMILY";
constexpr std::string_view kLoopback = "lo";
constexpr const char* kRemedy =
    ". Set it for the whole job (-x), or in the environment in which ncclrun starts there, or unset it";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// "eth0 (10.0.0.1, fd00::1), lo (127.0.0.1)": the interfaces that are up, with their addresses.
std::string interfacesHere() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "interfaces that it does not tell";
  std::map<std::string, std::string> found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char text[NI_MAXHOST];
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(one->ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    std::string& addresses = found[one->ifa_name];
    addresses += (addresses.empty() ? "" : ", ") + std::string(text);
  }
  freeifaddrs(all);
  std::string list;
  for (const auto& [name, addresses] : found) list += (list.empty() ? "" : ", ") + name + " (" + addresses + ")";
  return list.empty() ? "none" : list;
}

Status refused(const char* variable, std::string_view value, const std::string& why) {
  return {ncclInvalidUsage, std::string(variable) + "=" + std::string(value) + " in this rank's environment " + why +
                                "; this host has " + interfacesHere() + kRemedy};
}

}  // namespace

bool admitsInterface(std::string_view list, std::string_view name) {
  list = trimmed(list);
  const bool excludes = list.starts_with('^');
  if (excludes) list.remove_prefix(1);
  const bool isExact = list.starts_with('=');
  if (isExact) list.remove_prefix(1);
  bool isNamed = false, isEmpty = true;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view entry = trimmed(list.substr(0, comma));
    const std::string_view word = entry.substr(0, entry.find(':'));  // a port is for other NICs
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (word.empty()) continue;
    isEmpty = false;
    isNamed = isNamed || (isExact ? name == word : name.starts_with(word));
  }
  return isEmpty || isNamed != excludes;
}

Status checkWishedInterfaces(std::span<const SocketDevice> devices) {
  const char* const names = ncclVariable(kNames);
  const char* const familyText = ncclVariable(kFamily);
  const std::string_view family = trimmed(familyText == nullptr ? "" : familyText);
  for (const SocketDevice& device : devices) {
    if (device.interface.empty() || device.interface == kLoopback || device.interface == device.address) continue;
    const std::string used =
        "does not admit " + device.interface + " (" + device.address + "), which the job uses here";
    if (names != nullptr && !admitsInterface(names, device.interface)) return refused(kNames, names, used);
    if (family.empty()) continue;
    if (family != "AF_INET" && family != "AF_INET6") return refused(kFamily, family, "is neither AF_INET nor AF_INET6");
    const bool isSix = device.address.find(':') != std::string::npos;
    if (isSix != (family == "AF_INET6")) return refused(kFamily, family, used);
  }
  return {};
}

}  // namespace ncclrun::net
