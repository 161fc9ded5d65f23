#include "agent/peer_info.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/descriptor.h"
#include "base/fnv.h"
#include "base/host_identity.h"
#include "base/port_range.h"
#include "base/variables.h"

namespace ncclrun {
namespace {

constexpr int kBacklog = 4096;

Fnv saltedBy(const ncclUniqueId& id) {
  Fnv hash;
  hash.add(id.internal, sizeof id);
  return hash;
}

// Process ids repeat in pid namespaces; the namespace and the pid together do not.
std::string pidNamespace() {
  char target[64];
  const ssize_t length = readlink("/proc/self/ns/pid", target, sizeof target);
  return length < 0 ? std::string() : std::string(target, static_cast<size_t>(length));
}

Status listenError(const char* what, int error) {
  return {ncclSystemError, formatSentence("%s for connections from other hosts: %s%s", what, std::strerror(error),
                                          listenersBehind(error).c_str())};
}

}  // namespace

PeerInfo describePeer(const ncclUniqueId& id, const std::string& hostName, uint16_t listenPort,
                      const std::optional<cuda::Gpu>& gpu, const CommSettings& settings, uint32_t communicators) {
  Fnv host = saltedBy(id);
  if (const char* given = ncclVariable("NCCL_HOSTID"); given != nullptr && *given != '\0') {
    host.add(given);
  } else {
    host.add(hostName + bootId());
  }
  Fnv process = saltedBy(id);
  const pid_t pid = getpid();
  process.add(hostName + bootId() + pidNamespace());
  process.add(&pid, sizeof pid);
  struct stat sharedMemory {};
  const bool known = stat("/dev/shm", &sharedMemory) == 0;
  return {
      .version = 1,
      .device = gpu.has_value() ? 1u : 0u,
      .cudaDevice = gpu.has_value() ? static_cast<uint32_t>(gpu->device) : 0,
      .listenPort = listenPort,
      .hostHash = host.value(),
      .pidHash = process.value(),
      .shmDevice = known ? static_cast<uint64_t>(sharedMemory.st_dev) : 0,
      .busId = gpu.has_value() ? gpu->busId : 0,
      .flags = 0,
      .sms = gpu.has_value() ? gpu->sms : 0,
      .maxChannels = settings.maxChannels,
      .communicators = communicators,
  };
}

namespace {

// The address, with port 0; its length is 0 where the text is none.
socklen_t parseAddress(const char* text, sockaddr_storage& out) {
  auto& six = reinterpret_cast<sockaddr_in6&>(out);
  auto& four = reinterpret_cast<sockaddr_in&>(out);
  out = {};
  if (inet_pton(AF_INET, text, &four.sin_addr) == 1) {
    out.ss_family = AF_INET;
    return sizeof four;
  }
  if (inet_pton(AF_INET6, text, &six.sin6_addr) != 1) return 0;
  out.ss_family = AF_INET6;
  return sizeof six;
}

// The address that the plan gives other hosts for this one. Behind a translation of addresses it is none of this host's
// own, and a rank whose environment was cleared does not know it: then all addresses, of IPv6 and IPv4 or of IPv4
// alone. Where no port is left at one of them, the others are not tried.
Descriptor listenAnywhere(int& error) {
  const char* planned = std::getenv("NCCLRUN_HOST_ADDRESS");
  for (const char* text : {planned == nullptr ? "" : planned, "::", "0.0.0.0"}) {
    sockaddr_storage address;
    const socklen_t length = parseAddress(text, address);
    if (length == 0) continue;
    Descriptor listener = listenForHosts(address, length, SOCK_CLOEXEC | SOCK_NONBLOCK, kBacklog, error);
    if (listener.valid() || error == EADDRINUSE) return listener;
  }
  return {};
}

}  // namespace

Status listenForPeers(int& descriptor, uint16_t& port) {
  int error = 0;
  Descriptor listener = listenAnywhere(error);
  if (!listener.valid()) return listenError("listen", error);
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return listenError("getsockname", errno);
  port = portOf(address);
  descriptor = listener.release();
  return {};
}

}  // namespace ncclrun
