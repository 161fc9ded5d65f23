#include "agent/session.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <mutex>
#include <string_view>

#include "base/fnv.h"
#include "base/variables.h"

namespace ncclrun {
namespace {

// Guarded by `mutex`. Never destroyed: other threads may ask while the process ends.
struct SessionState {
  std::mutex mutex;
  bool named = false;
  bool entered = false;
  SessionName name{};
};
SessionState& membership() {
  static auto& own = *new SessionState;
  return own;
}

// Two hashes of the same words.
SessionName nameOf(std::initializer_list<std::string_view> words) {
  SessionName name;
  for (size_t half = 0; half < 2; half++) {
    Fnv hash;
    const unsigned char salt = half == 0 ? 's' : 'S';
    hash.add(&salt, 1);
    for (const std::string_view word : words) {
      hash.add(word);
      hash.add("\0", 1);
    }
    const uint64_t value = hash.value();
    std::memcpy(name.data() + half * sizeof value, &value, sizeof value);
  }
  return name;
}

// When the process began, in ticks since the boot: field 22 of proc(5)'s stat, behind a name that may hold anything.
std::string beginningOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text, '\0');
  size_t at = text.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; field++) at = text.find(' ', at + 1);
  if (at == std::string::npos) return {};
  return text.substr(at + 1, text.find(' ', at + 1) - at - 1);
}

// Our parent made us and our like: by multiprocessing or mp.spawn, as the same program; or as MPICH's proxy of this
// host.
bool parentStartsRanks(pid_t parent) {
  if (parent <= 1) return false;
  if (!environmentVariable("PMI_RANK").empty()) return true;
  struct stat ours {};
  struct stat theirs {};
  return stat("/proc/self/exe", &ours) == 0 &&
         stat(("/proc/" + std::to_string(parent) + "/exe").c_str(), &theirs) == 0 && ours.st_dev == theirs.st_dev &&
         ours.st_ino == theirs.st_ino;
}

// What a launcher says of the job, or our parent; false if nothing tells one job from another.
bool nameFromEnvironment(SessionName& name) {
  if (const auto given = environmentVariable("NCCLRUN_SESSION"); !given.empty())
    return name = nameOf({"given", given}), true;
  if (const auto job = environmentVariable("PMIX_NAMESPACE"); !job.empty()) return name = nameOf({"pmix", job}), true;
  if (const auto port = environmentVariable("MASTER_PORT"); !port.empty()) {
    return name =
               nameOf({"torch", environmentVariable("MASTER_ADDR"), port, environmentVariable("TORCHELASTIC_RUN_ID")}),
           true;
  }
  if (const auto step = environmentVariable("SLURM_STEP_ID");
      !step.empty() && !environmentVariable("SLURM_PROCID").empty()) {
    return name = nameOf({"slurm", environmentVariable("SLURM_JOB_ID"), step}), true;
  }
  const pid_t parent = getppid();
  if (!parentStartsRanks(parent)) return false;
  const std::string beginning = beginningOf(parent);
  return name = nameOf({"parent", std::to_string(parent), beginning}), true;
}

}  // namespace

Status currentSession(SessionName& name) {
  SessionState& own = membership();
  std::lock_guard lock(own.mutex);
  if (!own.named && !nameFromEnvironment(own.name)) {
    ssize_t got;
    do {
      got = getrandom(own.name.data(), own.name.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(own.name.size())) {
      return {ncclSystemError, formatSentence("getrandom: %s", std::strerror(errno))};
    }
  }
  own.named = true;
  name = own.name;
  return {};
}

bool enterSession(const SessionName& name) {
  SessionState& own = membership();
  std::lock_guard lock(own.mutex);
  if (own.entered) return own.name == name;
  own.name = name;
  own.named = own.entered = true;
  return true;
}

std::string sessionText(const SessionName& name) {
  std::string text;
  for (const uint8_t byte : name) text += formatSentence("%02x", byte);
  return text;
}

}  // namespace ncclrun
