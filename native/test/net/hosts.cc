#include "net/hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace ncclrun::test {
namespace {

// A process in a network namespace of its own, which ends with this one.
pid_t startHolder() {
  int ready[2];
  if (pipe(ready) != 0) return -1;
  const pid_t holder = fork();
  if (holder == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char made = unshare(CLONE_NEWNET) == 0 ? 1 : 0;
    if (write(ready[1], &made, 1) != 1) std::_Exit(1);
    for (;;) pause();
  }
  char made = 0;
  const bool isMade = holder > 0 && read(ready[0], &made, 1) == 1 && made == 1;
  close(ready[0]);
  close(ready[1]);
  return isMade ? holder : -1;
}

bool run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

}  // namespace

std::unique_ptr<NamespaceHosts> NamespaceHosts::make(std::string& why) {
  if (geteuid() != 0) {
    why = "network namespaces need root";
    return nullptr;
  }
  std::unique_ptr<NamespaceHosts> hosts(new NamespaceHosts);
  for (pid_t& holder : hosts->holders_) holder = startHolder();
  if (hosts->connect()) return hosts;
  why = "network namespaces and a cable between them cannot be made here";
  return nullptr;
}

NamespaceHosts::~NamespaceHosts() {
  for (const pid_t holder : holders_) {
    if (holder <= 0) continue;
    kill(holder, SIGKILL);
    waitpid(holder, nullptr, 0);
  }
}

bool NamespaceHosts::connect() const {
  if (holders_[0] <= 0 || holders_[1] <= 0) return false;
  const std::string first = std::to_string(holders_[0]), second = std::to_string(holders_[1]);
  if (!run("ip link add eth0 netns " + first + " type veth peer name eth0 netns " + second)) return false;
  for (const int host : {0, 1}) {
    const std::string ip = "nsenter --net=/proc/" + (host == 0 ? first : second) + "/ns/net ip ";
    if (!run(ip + "address add " + addressOf(host) + "/24 dev eth0") || !run(ip + "link set eth0 up") ||
        !run(ip + "link set lo up"))
      return false;
  }
  return true;
}

bool NamespaceHosts::enter(int host) const {
  const std::string path = "/proc/" + std::to_string(holders_[size_t(host)]) + "/ns/net";
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool isThere = descriptor >= 0 && setns(descriptor, CLONE_NEWNET) == 0;
  if (descriptor >= 0) close(descriptor);
  return isThere;
}

}  // namespace ncclrun::test
