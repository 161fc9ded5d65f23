#include "binding/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <utility>

namespace ncclrun::binding {
namespace {

constexpr int kChildsSocket = 3;

// As execve takes them: with a null at the end.
std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

bool sameName(const std::string& assignment, const char* entry) {
  return strncmp(assignment.c_str(), entry, assignment.find('=') + 1) == 0;
}

// What the child is to find, freed at the end. Its descriptors that are ours close on exec.
class Conditions {
 public:
  Conditions() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigaddset(&signals, SIGPIPE);  // Node ignores it, and what is ignored stays so in a child
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Conditions() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Conditions(const Conditions&) = delete;
  Conditions& operator=(const Conditions&) = delete;

  void openNull(int number) { posix_spawn_file_actions_addopen(&actions_, number, "/dev/null", O_RDWR, 0); }
  // Also takes the close-on-exec mark away.
  void give(int descriptor, int number) { posix_spawn_file_actions_adddup2(&actions_, descriptor, number); }

  // As execvp finds the program. `changes` (NAME=value) come to our environment. 0 or errno.
  int start(const std::vector<std::string>& words, pid_t& pid, const std::vector<std::string>& changes = {}) const {
    std::vector<std::string> copies = words;
    std::vector<char*> argv = pointers(copies);
    std::vector<std::string> added = changes;
    std::vector<char*> environment = pointers(added);
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (std::none_of(changes.begin(), changes.end(), [&](const auto& change) { return sameName(change, *entry); })) {
        environment.insert(environment.end() - 1, *entry);
      }
    }
    return posix_spawnp(&pid, argv.front(), &actions_, &attributes_, argv.data(), environment.data());
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

bool makePipe(Descriptor& reader, Descriptor& writer) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return false;
  reader.reset(ends[0]);
  writer.reset(ends[1]);
  return true;
}

}  // namespace

int startChild(const std::vector<std::string>& words, ChildProcess& out) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return errno;
  Descriptor ours(pair[0]);
  const Descriptor theirs(pair[1]);
  Conditions conditions;
  conditions.openNull(0);
  conditions.give(0, 1);
  conditions.give(theirs.get(), kChildsSocket);
  const int error = conditions.start(words, out.pid);
  if (error == 0) out.input = std::move(ours);
  return error;
}

int startTool(const std::vector<std::string>& words, const std::vector<std::string>& changes, ChildProcess& out) {
  Descriptor standardInput;
  Descriptor standardOutput;
  Descriptor standardError;
  ChildProcess child;
  if (!makePipe(standardInput, child.output) || !makePipe(child.input, standardOutput) ||
      !makePipe(child.standardError, standardError)) {
    return errno;
  }
  Conditions conditions;
  conditions.give(standardInput.get(), 0);
  conditions.give(standardOutput.get(), 1);
  conditions.give(standardError.get(), 2);
  const int error = conditions.start(words, child.pid, changes);
  if (error == 0) out = std::move(child);
  return error;
}

int runTool(const std::vector<std::string>& words, std::string& text, int& waitStatus) {
  Descriptor reader;
  Descriptor writer;
  if (!makePipe(reader, writer)) return errno;
  Conditions conditions;
  conditions.openNull(0);
  conditions.give(writer.get(), 1);
  conditions.give(writer.get(), 2);
  pid_t pid = 0;
  if (const int error = conditions.start(words, pid); error != 0) return error;
  writer.reset();
  char piece[4096];
  for (;;) {
    const ssize_t got = read(reader.get(), piece, sizeof piece);
    if (got > 0) text.append(piece, static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) break;
  }
  while (waitpid(pid, &waitStatus, 0) < 0 && errno == EINTR) {
  }
  return 0;
}

}  // namespace ncclrun::binding
