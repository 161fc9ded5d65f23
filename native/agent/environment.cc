#include "agent/environment.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/base64.h"
#include "base/variables.h"

namespace ncclrun {
namespace {

// -1 unless the variable is a whole number from 0 up.
int32_t number(const char* name) {
  const std::string_view text = environmentVariable(name);
  int32_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : -1;
}

Status unusable(const char* name) {
  const std::string value(environmentVariable(name));
  if (std::getenv(name) == nullptr) {
    return {
        ncclInvalidUsage,
        formatSentence("%s is not set: this process is no rank of a job. Start it with: ncclrun -n N PROGRAM", name)};
  }
  return {ncclInvalidUsage, formatSentence("%s=%s is not what ncclrun sets; do not change it", name, value.c_str())};
}

}  // namespace

Environment readEnvironment() {
  return {
      .agent = std::string(environmentVariable("NCCLRUN_AGENT")),
      .jobId = std::string(environmentVariable("NCCLRUN_JOB_ID")),
      .jobRank = number("NCCLRUN_RANK"),
      .jobSize = number("NCCLRUN_SIZE"),
  };
}

Status readJob(ncclUniqueId& id, int& size, int& rank) {
  const Environment environment = readEnvironment();
  std::vector<uint8_t> bytes;
  if (!decodeBase64(environmentVariable("NCCLRUN_UNIQUE_ID"), bytes) || bytes.size() != sizeof id) {
    return unusable("NCCLRUN_UNIQUE_ID");
  }
  if (environment.jobSize < 1) return unusable("NCCLRUN_SIZE");
  if (environment.jobRank < 0 || environment.jobRank >= environment.jobSize) return unusable("NCCLRUN_RANK");
  std::memcpy(&id, bytes.data(), sizeof id);
  size = environment.jobSize;
  rank = environment.jobRank;
  return {};
}

}  // namespace ncclrun
