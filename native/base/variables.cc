#include "base/variables.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string_view>

#include "base/descriptor.h"
#include "base/trusted_path.h"

namespace ncclrun {
namespace {

constexpr off_t kMaxBytes = 1 << 20;
constexpr std::string_view kPrefix = "NCCL_";

struct Value {
  std::string text, source;
};

struct Configuration {
  std::map<std::string, Value, std::less<>> values;
  std::vector<std::string> notes;
};

std::string homeDirectory() {
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return home;
  std::array<char, 4096> space;
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, space.data(), space.size(), &found) != 0 || found == nullptr) return "";
  return entry.pw_dir;
}

// False, with the reason: it cannot be read, is no regular file, or too long.
bool readWhole(const std::string& path, std::string& content, std::string& why) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat facts {};
  if (!file.valid() || fstat(file.get(), &facts) != 0) {
    why = std::strerror(errno);
    return false;
  }
  if (!S_ISREG(facts.st_mode) || facts.st_size > kMaxBytes) {
    why = S_ISREG(facts.st_mode) ? "it has more than 1 MiB" : "it is not a regular file";
    return false;
  }
  content.resize(size_t(facts.st_size));
  size_t done = 0;
  for (ssize_t got = 1; got > 0 && done<content.size(); done += got> 0 ? size_t(got) : 0) {
    got = read(file.get(), content.data() + done, content.size() - done);
  }
  content.resize(done);
  return true;
}

void add(Configuration& all, const std::string& path, const std::string& content) {
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const size_t equals = line.find('=');
    if (equals == std::string::npos || !line.starts_with(kPrefix)) continue;
    all.values.try_emplace(line.substr(0, equals), Value{line.substr(equals + 1), path});
  }
}

void readNamed(Configuration& all, const std::string& path) {
  std::string content, why;
  if (readWhole(path, content, why)) return add(all, path, content);
  all.notes.push_back("ignored NCCL_CONF_FILE=" + path + ": " + why);
}

void readUnnamed(Configuration& all, const std::string& path) {
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0 && (errno == ENOENT || errno == ENOTDIR)) return;
  std::string content, why = distrustOf(path);
  if (why.empty() && readWhole(path, content, why)) return add(all, path, content);
  all.notes.push_back("ignored " + path + ": " + why);
}

const Configuration& configuration() {
  static const auto& all = *new Configuration([] {  // never destroyed: values are given out
    Configuration made;
    const char* const named = std::getenv("NCCL_CONF_FILE");
    if (named != nullptr && *named != '\0') {
      readNamed(made, named);
    } else if (const std::string home = homeDirectory(); !home.empty()) {
      readUnnamed(made, home + "/.nccl.conf");
    }
    readUnnamed(made, "/etc/nccl.conf");
    return made;
  }());
  return all;
}

}  // namespace

bool parseNumber(const char* text, int64_t& value) {
  char* end = nullptr;
  errno = 0;
  value = std::strtoll(text, &end, 0);
  return errno == 0 && end != text && *end == '\0';
}

const char* ncclVariable(const char* name) {
  if (const char* const value = std::getenv(name); value != nullptr) return value;
  const auto found = configuration().values.find(std::string_view(name));
  return found == configuration().values.end() ? nullptr : found->second.text.c_str();
}

std::vector<ConfiguredVariable> ncclVariables() {
  std::map<std::string, Value> all(configuration().values.begin(), configuration().values.end());
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view assignment = *entry;
    const size_t equals = assignment.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = assignment.substr(0, equals);
    if (!name.starts_with(kPrefix) && !name.starts_with("NCCLRUN_")) continue;
    all[std::string(name)] = {std::string(assignment.substr(equals + 1)), "the environment"};
  }
  std::vector<ConfiguredVariable> list;
  for (auto& [name, value] : all) list.push_back({name, std::move(value.text), std::move(value.source)});
  return list;
}

const std::vector<std::string>& ncclConfigurationNotes() { return configuration().notes; }

}  // namespace ncclrun
