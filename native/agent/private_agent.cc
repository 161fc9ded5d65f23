#include "agent/private_agent.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/detached_process.h"
#include "base/installation.h"
#include "base/shared_file.h"

extern char** environ;

namespace ncclrun {
namespace {

// Between the two system calls with which another process becomes the one that starts the agent.
constexpr int kNaps = 5000;
constexpr timespec kNap = {0, 1'000'000};
constexpr size_t kStandardErrorBytes = 64 * 1024;

struct Address {
  sockaddr_un bytes{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

Address addressOf(const std::string& name) {
  Address address;
  address.bytes.sun_family = AF_UNIX;
  std::memcpy(address.bytes.sun_path + 1, name.data(), name.size());  // after a zero byte: the abstract namespace
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Status systemError(const std::string& name, const char* what) {
  return {ncclSystemError, formatSentence("private agent @%s: %s: %s", name.c_str(), what, std::strerror(errno))};
}

// 0, or errno of the attempt.
int tryConnect(const Address& address, Descriptor& socket) {
  socket.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errno;
  while (connect(socket.get(), address.get(), address.size) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// Names in the abstract namespace belong to whoever is first.
Status checkOwner(const PrivateAgent& agent) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(agent.socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return systemError(agent.name, "SO_PEERCRED");
  }
  if (peer.uid == geteuid()) return {};
  return {
      ncclSystemError,
      formatSentence("private agent @%s: a process of user id %u (pid %d) has taken this name. Start the program with: "
                     "ncclrun -n N PROGRAM",
                     agent.name.c_str(), peer.uid, peer.pid)};
}

bool isNamed(std::string_view assignment, std::string_view name) {
  return assignment.starts_with(name) && assignment.substr(name.size()).starts_with('=');
}

// What makes Node load other code or open a port, as in bin/start-node.sh; and the engine is this very library,
// whatever LD_LIBRARY_PATH names.
constexpr const char* kKept[] = {"LD_PRELOAD",   "NODE_OPTIONS",    "NODE_PATH",      "NODE_COMPILE_CACHE",
                                 "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES"};

// Ours, without those.
std::vector<std::string> agentEnvironment(const std::string& library) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool isKept =
        std::any_of(std::begin(kKept), std::end(kKept), [&](const char* name) { return isNamed(*entry, name); });
    if (!isKept) all.emplace_back(*entry);
  }
  if (library.find_first_of(" :;\t\n") == std::string::npos) all.push_back("LD_PRELOAD=" + library);
  return all;
}

Status startAgent(const Descriptor& listener, PrivateAgent& agent) {
  Installation installation;
  if (Status status = findInstallation(installation); !status.ok()) {
    return {status.code, "cannot start a private agent: " + status.sentence};
  }
  SharedFile standardError = makeSharedFile("ncclrun-stderr");
  if (!standardError.descriptor.valid()) return {ncclSystemError, "cannot start a private agent: " + standardError.why};
  agent.standardError = std::move(standardError.descriptor);
  agent.command = installation.node + " " + installation.agent;
  std::vector<std::string> words = {installation.node};
  words.insert(words.end(), installation.options.begin(), installation.options.end());
  words.insert(words.end(), {installation.agent, "private"});
  const DetachedProcess process = {
      .words = std::move(words),
      .environment = agentEnvironment(installation.library),
      .input = listener.get(),
      .standardError = agent.standardError.get(),
  };
  const int error = startDetached(process);
  if (error == 0) return {};
  return {ncclSystemError,
          formatSentence("cannot start a private agent: %s: %s", installation.node.c_str(), std::strerror(error))};
}

}  // namespace

Status reachPrivateAgent(const SessionName& session, PrivateAgent& out) {
  out = {};
  out.name = formatSentence("ncclrun-%u-%s", geteuid(), sessionText(session).c_str());
  const Address address = addressOf(out.name);
  for (int naps = 0; naps < kNaps; naps++, nanosleep(&kNap, nullptr)) {
    int error = tryConnect(address, out.socket);
    if (error == 0) return checkOwner(out);
    if (error != ECONNREFUSED) break;
    const Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!listener.valid()) break;
    if (bind(listener.get(), address.get(), address.size) != 0) {
      if (errno == EADDRINUSE) continue;
      break;
    }
    if (listen(listener.get(), SOMAXCONN) != 0) break;
    // Our connection waits in the socket's queue: the agent has its first engine before it looks for one.
    error = tryConnect(address, out.socket);
    return error == 0 ? startAgent(listener, out) : systemError(out.name, "connect");
  }
  return systemError(out.name, "cannot connect");
}

Status whyEnded(const PrivateAgent& agent) {
  std::string text(kStandardErrorBytes, '\0');
  const ssize_t got = pread(agent.standardError.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  // Node's own complaints begin with a piece of source.
  const size_t error = text.find("Error");
  const size_t start = error == std::string::npos ? 0 : text.rfind('\n', error) + 1;  // npos + 1 is 0
  const std::string line = text.substr(start, text.find('\n', start) - start);
  return {
      ncclSystemError,
      formatSentence("the private agent (%s) ended before it answered%s%s. It needs Node 22.18 or newer: NCCLRUN_NODE "
                     "names one; or start the program with: ncclrun -n N PROGRAM",
                     agent.command.c_str(), line.empty() ? "" : ": ", line.c_str())};
}

}  // namespace ncclrun
