#include "core/config.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace ncclrun {
namespace {

constexpr unsigned kMagic = 0xcafebeef;
constexpr size_t kShortest = offsetof(ncclConfig_t, cgaClusterSize);  // NCCL 2.14's last field was `blocking`

struct Range {
  const char* name;
  int ncclConfig_t::*field;
  int least;
  int most;
};
constexpr Range kRanges[] = {
    {"blocking", &ncclConfig_t::blocking, 0, 1},
    {"cgaClusterSize", &ncclConfig_t::cgaClusterSize, 0, 8},
    {"minCTAs", &ncclConfig_t::minCTAs, 1, INT_MAX},
    {"maxCTAs", &ncclConfig_t::maxCTAs, 1, INT_MAX},
    {"splitShare", &ncclConfig_t::splitShare, 0, 1},
    {"trafficClass", &ncclConfig_t::trafficClass, 0, INT_MAX},
    {"collnetEnable", &ncclConfig_t::collnetEnable, 0, 1},
    {"CTAPolicy", &ncclConfig_t::CTAPolicy, 0, NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO},
    {"shrinkShare", &ncclConfig_t::shrinkShare, 0, 1},
    {"nvlsCTAs", &ncclConfig_t::nvlsCTAs, 1, INT_MAX},
    {"nChannelsPerNetPeer", &ncclConfig_t::nChannelsPerNetPeer, 1, INT_MAX},
    {"nvlinkCentricSched", &ncclConfig_t::nvlinkCentricSched, 0, 1},
};

}  // namespace

Status readConfig(const ncclConfig_t* config, CommSettings& settings) {
  if (config == nullptr) return {};
  if (config->magic != kMagic || config->size < kShortest) {
    return {ncclInvalidArgument,
            formatSentence("config was not begun with NCCL_CONFIG_INITIALIZER: size %zu, magic 0x%x", config->size,
                           config->magic)};
  }
  ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
  std::memcpy(static_cast<void*>(&known), config, std::min(config->size, sizeof known));
  for (const Range& range : kRanges) {
    const int value = known.*range.field;
    if (value == NCCL_CONFIG_UNDEF_INT || (value >= range.least && value <= range.most)) continue;
    return {ncclInvalidArgument, range.most == INT_MAX ? formatSentence("config.%s is %d; it must be at least %d",
                                                                        range.name, value, range.least)
                                                       : formatSentence("config.%s is %d; it must be from %d to %d",
                                                                        range.name, value, range.least, range.most)};
  }
  if (known.minCTAs != NCCL_CONFIG_UNDEF_INT && known.maxCTAs != NCCL_CONFIG_UNDEF_INT &&
      known.minCTAs > known.maxCTAs) {
    return {ncclInvalidArgument, formatSentence("config.minCTAs is %d, more than config.maxCTAs, which is %d",
                                                known.minCTAs, known.maxCTAs)};
  }
  if (known.blocking != NCCL_CONFIG_UNDEF_INT) settings.blocking = known.blocking == 1;
  return {};
}

}  // namespace ncclrun
