// Two hosts that are network namespaces of this machine, joined by a cable: eth0 is 10.99.0.1 on the one and 10.99.0.2
// on the other.
#pragma once
#include <sys/types.h>

#include <array>
#include <memory>
#include <string>

namespace ncclrun::test {

class NamespaceHosts {
 public:
  // Null, with the reason, where they cannot be made: not root, or no `ip` command.
  static std::unique_ptr<NamespaceHosts> make(std::string& why);
  ~NamespaceHosts();
  NamespaceHosts(const NamespaceHosts&) = delete;
  NamespaceHosts& operator=(const NamespaceHosts&) = delete;

  // From now on the calling process (with its one thread) is on that host.
  bool enter(int host) const;
  static std::string addressOf(int host) { return "10.99.0." + std::to_string(1 + host); }

 private:
  NamespaceHosts() = default;
  bool connect() const;

  std::array<pid_t, 2> holders_ = {};  // each holds a namespace open
};

}  // namespace ncclrun::test
