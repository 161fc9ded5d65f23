#include "agent/config.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/variables.h"

namespace ncclrun {
namespace {

constexpr unsigned kMagic = 0xcafebeef;
constexpr size_t kShortest = offsetof(ncclConfig_t, cgaClusterSize);  // NCCL 2.14's last field was `blocking`

// `since`: the version whose structure has it first. The size alone does not tell: 2.18 ended in padding where 2.25 has
// `trafficClass`, and what lies in padding is anything.
struct Range {
  const char* name;
  int ncclConfig_t::*field;
  size_t offset;
  unsigned since;
  int min;
  int max;
};
#define NCCLRUN_FIELD(name) #name, &ncclConfig_t::name, offsetof(ncclConfig_t, name)
constexpr Range kRanges[] = {
    {NCCLRUN_FIELD(blocking), 21400, 0, 1},
    {NCCLRUN_FIELD(cgaClusterSize), 21700, 0, 8},
    {NCCLRUN_FIELD(minCTAs), 21700, 1, INT_MAX},
    {NCCLRUN_FIELD(maxCTAs), 21700, 1, INT_MAX},
    {NCCLRUN_FIELD(splitShare), 21800, 0, 1},
    {NCCLRUN_FIELD(trafficClass), 22500, 0, INT_MAX},
    {NCCLRUN_FIELD(collnetEnable), 22700, 0, 1},
    {NCCLRUN_FIELD(CTAPolicy), 22700, 0, NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO},
    {NCCLRUN_FIELD(shrinkShare), 22700, 0, 1},
    {NCCLRUN_FIELD(nvlsCTAs), 22700, 1, INT_MAX},
    {NCCLRUN_FIELD(nChannelsPerNetPeer), 22800, 1, INT_MAX},
    {NCCLRUN_FIELD(nvlinkCentricSched), 22800, 0, 1},
};
#undef NCCLRUN_FIELD

// given: false where the environment has no such variable, or it is empty.
Status readNumber(const char* name, bool& given, int64_t& value) {
  const char* const text = ncclVariable(name);
  given = text != nullptr && *text != '\0';
  if (!given) return {};
  if (parseNumber(text, value)) return {};
  return {ncclInvalidArgument, formatSentence("%s=%s is not a whole number", name, text)};
}

// `commName` came with 2.27.
constexpr unsigned kCommNameSince = 22700;

// From the environment, under NCCL's two names for it and under ours, which only ever takes away.
Status readMaxChannels(CommSettings& settings) {
  constexpr int64_t kMax = 1 << 16;
  bool given = false;
  int64_t value = 0;
  // As with NCCL less than one is one, and under the other name nothing.
  NCCLRUN_TRY(readNumber("NCCL_MAX_NCHANNELS", given, value));
  if (given) settings.maxChannels = uint32_t(std::clamp<int64_t>(value, 1, kMax));
  NCCLRUN_TRY(readNumber("NCCL_MAX_CTAS", given, value));
  if (given && value > 0) settings.maxChannels = uint32_t(std::min(value, kMax));
  NCCLRUN_TRY(readNumber("NCCLRUN_MAX_SMS", given, value));
  if (!given) return {};
  if (value < 1) {
    return {ncclInvalidArgument,
            formatSentence("NCCLRUN_MAX_SMS=%lld is not a whole number from 1", static_cast<long long>(value))};
  }
  const auto bound = uint32_t(std::min(value, kMax));
  settings.maxChannels = settings.maxChannels == 0 ? bound : std::min(settings.maxChannels, bound);
  return {};
}

// As with NCCL, 0 or 1 stands above the program's config; other values mean nothing.
Status readBlocking(CommSettings& settings) {
  bool given = false;
  int64_t value = 0;
  Status status = readNumber("NCCL_COMM_BLOCKING", given, value);
  if (status.ok() && given && (value == 0 || value == 1)) settings.blocking = value == 1;
  return status;
}

Status readFields(const ncclConfig_t* config, CommSettings& settings) {
  if (config == nullptr) return {};
  if (config->magic != kMagic || config->size < kShortest) {
    return {ncclInvalidArgument,
            formatSentence("config was not begun with NCCL_CONFIG_INITIALIZER: size %zu, magic 0x%x", config->size,
                           config->magic)};
  }
  ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
  std::memcpy(static_cast<void*>(&known), config, std::min(config->size, sizeof known));
  for (const Range& range : kRanges) {
    if (config->version < range.since || config->size < range.offset + sizeof(int)) {
      known.*range.field = NCCL_CONFIG_UNDEF_INT;
    }
    const int value = known.*range.field;
    if (value == NCCL_CONFIG_UNDEF_INT || (value >= range.min && value <= range.max)) continue;
    return {ncclInvalidArgument,
            range.max == INT_MAX
                ? formatSentence("config.%s is %d; it must be at least %d", range.name, value, range.min)
                : formatSentence("config.%s is %d; it must be from %d to %d", range.name, value, range.min, range.max)};
  }
  if (known.minCTAs != NCCL_CONFIG_UNDEF_INT && known.maxCTAs != NCCL_CONFIG_UNDEF_INT &&
      known.minCTAs > known.maxCTAs) {
    return {ncclInvalidArgument, formatSentence("config.minCTAs is %d, more than config.maxCTAs, which is %d",
                                                known.minCTAs, known.maxCTAs)};
  }
  if (known.blocking != NCCL_CONFIG_UNDEF_INT) settings.blocking = known.blocking == 1;
  if (known.maxCTAs != NCCL_CONFIG_UNDEF_INT) settings.maxChannels = uint32_t(known.maxCTAs);
  if (config->version >= kCommNameSince && config->size >= offsetof(ncclConfig_t, collnetEnable) &&
      known.commName != nullptr) {
    settings.name = known.commName;
  }
  return {};
}

}  // namespace

Status readConfig(const ncclConfig_t* config, CommSettings& settings) {
  Status status = readFields(config, settings);
  if (status.ok()) status = readBlocking(settings);
  return status.ok() ? readMaxChannels(settings) : status;
}

}  // namespace ncclrun
