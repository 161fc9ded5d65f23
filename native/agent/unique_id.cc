#include "agent/unique_id.h"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/environment.h"
#include "base/fnv.h"
#include "base/host_identity.h"

namespace ncclrun {
namespace {

constexpr size_t kJobOffset = 8;
constexpr size_t kRandomOffset = 16;
constexpr size_t kRandomBytes = 16;
// Of an id made outside a job.
constexpr size_t kHostOffset = 32;
constexpr size_t kUserOffset = 40;
constexpr size_t kSessionOffset = 48;

uint64_t wordAt(const ncclUniqueId& id, size_t offset) {
  uint64_t word;
  std::memcpy(&word, id.internal + offset, sizeof word);
  return word;
}

uint32_t userOf(const ncclUniqueId& id) {
  uint32_t user;
  std::memcpy(&user, id.internal + kUserOffset, sizeof user);
  return user;
}

// Where an id made here can be joined.
ncclResult_t writeOrigin(ncclUniqueId& id) {
  SessionName session;
  if (Status status = currentSession(session); !status.ok()) {
    return fail({status.code, "ncclGetUniqueId: " + status.sentence});
  }
  const uint64_t host = hostIdentity();
  const uint32_t user = geteuid();
  std::memcpy(id.internal + kHostOffset, &host, sizeof host);
  std::memcpy(id.internal + kUserOffset, &user, sizeof user);
  std::memcpy(id.internal + kSessionOffset, session.data(), session.size());
  return ncclSuccess;
}

// Whether a private agent can serve it here.
Status checkOrigin(const ncclUniqueId& id) {
  SessionName own;
  NCCLRUN_TRY(currentSession(own));
  if (wordAt(id, kHostOffset) == 0) {
    if (wordAt(id, kJobOffset) == 0) return enterSession(own), Status{};  // made here, for ranks of this process
    return {
        ncclInvalidUsage,
        "the unique id is of a job that ncclrun started, and this process is no part of it: NCCLRUN_AGENT is not set. "
        "Start it with: ncclrun -n N PROGRAM"};
  }
  if (wordAt(id, kHostOffset) != hostIdentity()) {
    return {ncclInvalidUsage,
            "the unique id was made on another host, or in another container: without ncclrun the ranks of a "
            "communicator are on one host. Start the program with: ncclrun -H HOST1:N,HOST2:N PROGRAM"};
  }
  if (userOf(id) != geteuid()) {
    return {ncclInvalidUsage,
            formatSentence("the unique id was made by user id %u, and this process runs as user id %u", userOf(id),
                           geteuid())};
  }
  SessionName session;
  std::memcpy(session.data(), id.internal + kSessionOffset, session.size());
  if (enterSession(session)) return {};
  return {ncclInvalidUsage,
          formatSentence("the unique id is of session %s, this process belongs to session %s since it first joined a "
                         "communicator. Give all processes of the job one name: NCCLRUN_SESSION=NAME; or start the "
                         "program with: ncclrun -n N PROGRAM",
                         sessionText(session).c_str(), sessionText(own).c_str())};
}

}  // namespace

uint64_t hashJobId(std::string_view jobId) {
  if (jobId.empty()) return 0;
  Fnv hash;
  hash.add(jobId);
  return hash.value();
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
  if (got != static_cast<ssize_t>(kRandomBytes)) {
    return fail(ncclSystemError, "ncclGetUniqueId: getrandom: %s", std::strerror(errno));
  }
  return ncclSuccess;
}

ncclResult_t addOrigin(ncclUniqueId& id) { return readEnvironment().agent.empty() ? writeOrigin(id) : ncclSuccess; }

Status checkUniqueId(const ncclUniqueId& id) {
  if (wordAt(id, 0) != kUniqueIdMagic) {
    return {ncclInvalidArgument,
            "the unique id was not made by ncclGetUniqueId of this library: it was not passed on whole, or it comes "
            "from another "
            "NCCL"};
  }
  const Environment environment = readEnvironment();
  const std::string& jobId = environment.jobId;
  const uint64_t job = wordAt(id, kJobOffset);
  if (job != 0 && !jobId.empty() && job != hashJobId(jobId)) {
    return {ncclInvalidArgument,
            formatSentence("the unique id belongs to another job than this process's, which is %s", jobId.c_str())};
  }
  return environment.agent.empty() ? checkOrigin(id) : Status{};
}

uint64_t shortName(const ncclUniqueId& id) { return wordAt(id, kRandomOffset); }

bool sameId(const ncclUniqueId& one, const ncclUniqueId& other) { return std::memcmp(&one, &other, sizeof one) == 0; }

}  // namespace ncclrun
