#include "binding/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace ncclrun::binding {
namespace {

constexpr int kSocket = 3;

// What the child is to find, freed at the end.
class Conditions {
 public:
  explicit Conditions(int socket) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, socket, kSocket);  // also takes the close-on-exec mark away
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  }
  ~Conditions() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  Conditions(const Conditions&) = delete;
  Conditions& operator=(const Conditions&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

}  // namespace

int startGuardian(const std::string& path, const std::string& argument, ChildProcess& out) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return errno;
  Descriptor ours(pair[0]);
  const Descriptor theirs(pair[1]);
  if (fcntl(ours.get(), F_SETFL, O_NONBLOCK) < 0) return errno;
  const Conditions conditions(theirs.get());
  std::string program = path;
  std::string word = argument;
  char* const argv[] = {program.data(), word.data(), nullptr};
  const int error = posix_spawn(&out.pid, path.c_str(), &conditions.actions, &conditions.attributes, argv, environ);
  if (error == 0) out.socket = std::move(ours);
  return error;
}

}  // namespace ncclrun::binding
