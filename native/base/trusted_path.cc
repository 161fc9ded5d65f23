#include "base/trusted_path.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "base/error.h"

namespace ncclrun {
namespace {

constexpr uid_t kOverflowUser = 65534;  // how a user namespace shows whom it does not know
constexpr mode_t kPermissions = 07777;

std::vector<std::string> fieldsOf(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream rest(line);
  for (std::string field; std::getline(rest, field, ':');) fields.push_back(field);
  fields.resize(std::max<size_t>(fields.size(), 4));
  return fields;
}

// The lines of a file of accounts (/etc/passwd, /etc/group), in fields, whose field number `field` is `number`.
std::vector<std::vector<std::string>> entriesWith(const char* file, size_t field, const std::string& number) {
  std::vector<std::vector<std::string>> found;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    auto fields = fieldsOf(line);
    if (fields[field] == number) found.push_back(std::move(fields));
  }
  return found;
}

// Whether the group is that user's private one, as control/accounts.ts has it.
bool isGroupOf(uid_t user, gid_t group) {
  const std::string number = std::to_string(group);
  const auto primary = entriesWith("/etc/passwd", 3, number);  // name, password, number, group
  const auto groups = entriesWith("/etc/group", 2, number);    // name, password, number, members
  if (primary.size() != 1 || groups.size() != 1 || primary[0][2] != std::to_string(user)) return false;
  const std::string &name = primary[0][0], &members = groups[0][3];
  return groups[0][0] == name && (members.empty() || members == name);
}

bool hasRoot() {
  std::ifstream map("/proc/self/uid_map");
  for (std::string line; std::getline(map, line);) {
    unsigned long inside = 1;
    if (std::istringstream(line) >> inside && inside == 0) return true;
  }
  return false;
}

bool isOwner(uid_t user) { return user == 0 || user == geteuid() || (user == kOverflowUser && !hasRoot()); }

std::string distrustOfPart(const std::string& path, bool isAbove) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return path + ": " + std::strerror(errno);
  if (!isOwner(found.st_uid)) return formatSentence("%s belongs to user id %u", path.c_str(), found.st_uid);
  if (S_ISLNK(found.st_mode)) return {};
  if (isAbove && S_ISDIR(found.st_mode) && (found.st_mode & S_ISVTX) != 0) return {};
  const mode_t mode = found.st_mode & kPermissions;
  if ((mode & S_IWOTH) != 0) return formatSentence("others may write to %s (mode %o)", path.c_str(), mode);
  if ((mode & S_IWGRP) == 0 || isGroupOf(geteuid(), found.st_gid) || isGroupOf(0, found.st_gid)) return {};
  return formatSentence("group id %u may write to %s (mode %o)", found.st_gid, path.c_str(), mode);
}

std::string distrustOfParts(const std::string& path) {
  for (size_t slash = 0; slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (std::string why = distrustOfPart(slash == 0 ? "/" : path.substr(0, slash), true); !why.empty()) return why;
  }
  return distrustOfPart(path, false);
}

}  // namespace

std::string distrustOf(const std::string& path) {
  if (std::string why = distrustOfParts(path); !why.empty()) return why;
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) return path + ": " + std::strerror(errno);
  return path == real.get() ? std::string() : distrustOfParts(real.get());
}

std::string executablePath(const std::string& path, std::string& why) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) {
    why = path + ": cannot open shared object file: " + std::strerror(errno);
    return {};
  }
  const std::string whole = path.front() == '/' ? path : real.get();
  const std::string distrust = distrustOf(whole);
  if (distrust.empty()) return whole;
  why = path + " is not executed, it may be another user's: " + distrust;
  return {};
}

std::string distrustOfAll(const std::string& directory) {
  if (std::string why = distrustOf(directory); !why.empty()) return why;
  const std::unique_ptr<DIR, int (*)(DIR*)> files(opendir(directory.c_str()), &closedir);
  if (files == nullptr) return directory + ": " + std::strerror(errno);
  while (const dirent* entry = readdir(files.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = directory + "/" + name;
    const bool isLink = entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
    if (std::string why = isLink ? distrustOf(path) : distrustOfPart(path, false); !why.empty()) return why;
  }
  return {};
}

}  // namespace ncclrun
