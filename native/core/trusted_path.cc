#include "core/trusted_path.h"

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

#include "core/error.h"

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

// Whether the group is that of the user with its number alone, as far as the system's files know.
bool isOwnGroup(uid_t user, gid_t group) {
  if (user != group) return false;
  if (group == 0) return true;
  const std::string number = std::to_string(group);
  std::ifstream groups("/etc/group");
  for (std::string line; std::getline(groups, line);) {
    const auto fields = fieldsOf(line);  // name, password, number, members
    if (fields[2] == number && !fields[3].empty() && fields[3] != fields[0]) return false;
  }
  std::ifstream users("/etc/passwd");
  for (std::string line; std::getline(users, line);) {
    const auto fields = fieldsOf(line);  // name, password, number, group
    if (fields[3] == number && fields[2] != number) return false;
  }
  return true;
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
  if ((mode & S_IWGRP) == 0 || isOwnGroup(found.st_uid, found.st_gid)) return {};
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
