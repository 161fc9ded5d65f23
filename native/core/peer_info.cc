#include "core/peer_info.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/descriptor.h"
#include "core/fnv.h"
#include "core/host_identity.h"

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

Status systemError(const char* what) {
  return {ncclSystemError, formatSentence("%s for connections from other hosts: %s", what, std::strerror(errno))};
}

}  // namespace

PeerInfo describePeer(const ncclUniqueId& id, const std::string& hostName, uint16_t listenPort,
                      const std::optional<cuda::Gpu>& gpu, const CommSettings& settings, uint32_t communicators) {
  Fnv host = saltedBy(id);
  if (const char* given = std::getenv("NCCL_HOSTID"); given != nullptr && *given != '\0') {
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
      .multiprocessors = gpu.has_value() ? gpu->multiprocessors : 0,
      .mostChannels = settings.mostChannels,
      .communicators = communicators,
  };
}

Status listenForPeers(int& descriptor, uint16_t& port) {
  Descriptor listener(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage address{};
  socklen_t length = sizeof(sockaddr_in6);
  if (listener.valid()) {
    const int both = 0;
    setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof both);
    reinterpret_cast<sockaddr_in6&>(address).sin6_family = AF_INET6;
  } else {  // a kernel without IPv6
    listener.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener.valid()) return systemError("socket");
    reinterpret_cast<sockaddr_in&>(address).sin_family = AF_INET;
    length = sizeof(sockaddr_in);
  }
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), generic, length) != 0) return systemError("bind");
  if (listen(listener.get(), kBacklog) != 0) return systemError("listen");
  if (getsockname(listener.get(), generic, &length) != 0) return systemError("getsockname");
  port = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
  descriptor = listener.release();
  return {};
}

}  // namespace ncclrun
