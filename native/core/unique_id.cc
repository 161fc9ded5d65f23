#include "core/unique_id.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "core/environment.h"

namespace ncclrun {
namespace {

constexpr size_t kJobOffset = 8;
constexpr size_t kRandomOffset = 16;
constexpr size_t kRandomBytes = 16;

uint64_t wordAt(const ncclUniqueId& id, size_t offset) {
  uint64_t word;
  std::memcpy(&word, id.internal + offset, sizeof word);
  return word;
}

}  // namespace

uint64_t hashJobId(std::string_view jobId) {
  if (jobId.empty()) return 0;
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : jobId) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

ncclResult_t makeUniqueId(ncclUniqueId& id) {
  std::memset(&id, 0, sizeof id);
  std::memcpy(id.internal, &kUniqueIdMagic, sizeof kUniqueIdMagic);
  const uint64_t job = hashJobId(readEnvironment().jobId);
  std::memcpy(id.internal + kJobOffset, &job, sizeof job);
  ssize_t got;
  do {
    got = getrandom(id.internal + kRandomOffset, kRandomBytes, 0);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(kRandomBytes)) return ncclSuccess;
  return fail(ncclSystemError, "ncclGetUniqueId: getrandom: %s", std::strerror(errno));
}

Status checkUniqueId(const ncclUniqueId& id) {
  if (wordAt(id, 0) != kUniqueIdMagic) {
    return {ncclInvalidArgument,
            "the unique id was not made by ncclGetUniqueId of this library: it was not passed on whole, or it comes "
            "from another "
            "NCCL"};
  }
  const std::string jobId = readEnvironment().jobId;
  const uint64_t job = wordAt(id, kJobOffset);
  if (job != 0 && !jobId.empty() && job != hashJobId(jobId)) {
    return {ncclInvalidArgument,
            formatSentence("the unique id belongs to another job than this process's, which is %s", jobId.c_str())};
  }
  return {};
}

uint64_t shortName(const ncclUniqueId& id) { return wordAt(id, kRandomOffset); }

bool sameId(const ncclUniqueId& one, const ncclUniqueId& other) { return std::memcmp(&one, &other, sizeof one) == 0; }

}  // namespace ncclrun
