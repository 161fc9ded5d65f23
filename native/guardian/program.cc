#include "guardian/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

namespace ncclrun::guardian {
namespace {

constexpr const char* kDefaultSearchPath = "/usr/local/bin:/usr/bin:/bin";
char shellName[] = "/bin/sh";

// Of "NAME=value".
uint32_t hashOfName(const char* variable) {
  uint32_t hash = 2166136261u;
  for (; *variable != 0 && *variable != '='; ++variable)
    hash = (hash ^ static_cast<unsigned char>(*variable)) * 16777619u;
  return hash;
}

bool sameName(const char* left, const char* right) {
  while (*left == *right && *left != 0 && *left != '=') {
    ++left;
    ++right;
  }
  return *left == '=' && *right == '=';
}

// True for a file that no shell could read: a program for another processor, or with a NUL in its first line, as POSIX
// tells text from programs. System calls only.
bool isBinary(const char* path) {
  char begin[128];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t bytes = read(file, begin, sizeof begin);
  close(file);
  if (bytes <= 0) return false;
  const size_t count = static_cast<size_t>(bytes);
  if (count >= 4 && memcmp(begin, "\177ELF", 4) == 0) return true;
  const void* newline = memchr(begin, '\n', count);
  const size_t line = newline == nullptr ? count : static_cast<size_t>(static_cast<const char*>(newline) - begin);
  return memchr(begin, 0, line) != nullptr;
}

// Variables of which each replaces those of the same name that are added after it.
class Environment {
 public:
  void add(char* variable) {
    const uint32_t hash = hashOfName(variable);
    for (size_t i = 0; i < hashes_.size(); ++i) {
      if (hashes_[i] == hash && sameName(variables_[i], variable)) return;
    }
    hashes_.push_back(hash);
    variables_.push_back(variable);
  }
  std::vector<char*> take() { return std::move(variables_); }

 private:
  std::vector<uint32_t> hashes_;
  std::vector<char*> variables_;
};

}  // namespace

Program::Program(const RankOrder& order) : name_(order.arguments[0]), arguments_(order.arguments.data()) {
  Environment environment;
  for (size_t i = order.environment.size(); i > 0; --i) environment.add(order.environment[i - 1]);
  for (char** ours = environ; *ours != nullptr; ++ours) environment.add(*ours);
  environment_ = environment.take();

  searchPath_ = kDefaultSearchPath;
  for (const char* variable : environment_) {
    if (strncmp(variable, "PATH=", 5) == 0) searchPath_ = variable + 5;
  }
  environment_.push_back(nullptr);

  shellArguments_ = {shellName, nullptr};
  shellArguments_.insert(shellArguments_.end(), order.arguments.begin() + 1, order.arguments.end());
}

void Program::executeFile(const char* path) const {
  execve(path, arguments_, environment_.data());
  if (errno != ENOEXEC) return;
  if (isBinary(path)) {
    errno = ENOEXEC;
    return;
  }
  shellArguments_[1] = const_cast<char*>(path);
  execve(shellName, shellArguments_.data(), environment_.data());
}

void Program::execute() const {
  const size_t nameBytes = strlen(name_);
  if (nameBytes == 0) {
    errno = ENOENT;
    return;
  }
  if (strchr(name_, '/') != nullptr) return executeFile(name_);

  bool denied = false;
  char path[PATH_MAX];
  for (const char* entry = searchPath_;;) {
    const char* end = strchrnul(entry, ':');
    const size_t bytes = static_cast<size_t>(end - entry);
    if (bytes + 1 + nameBytes < sizeof path) {
      memcpy(path, entry, bytes);
      path[bytes] = '/';
      memcpy(path + bytes + (bytes > 0), name_, nameBytes + 1);  // an empty entry is the working directory
      executeFile(path);
      if (errno == EACCES)
        denied = true;
      else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV && errno != ETIMEDOUT)
        return;
    }
    if (*end == 0) break;
    entry = end + 1;
  }
  errno = denied ? EACCES : ENOENT;
}

}  // namespace ncclrun::guardian
