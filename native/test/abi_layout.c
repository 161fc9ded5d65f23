/* The binary interface: values, sizes and offsets of nccl.h are those that programs for NCCL 2.28 were compiled with.
 */
#include <stdio.h>
#include <string.h>

#include "nccl.h"
#include "ncclrun.h"

#define CHECK(name, condition) typedef char name[(condition) ? 1 : -1]

CHECK(unique_id_size, sizeof(ncclUniqueId) == 128);
CHECK(config_size, sizeof(ncclConfig_t) == 80);
CHECK(config_magic, offsetof(ncclConfig_t, magic) == 8);
CHECK(config_version, offsetof(ncclConfig_t, version) == 12);
CHECK(config_blocking, offsetof(ncclConfig_t, blocking) == 16);
CHECK(config_cga, offsetof(ncclConfig_t, cgaClusterSize) == 20);
CHECK(config_min, offsetof(ncclConfig_t, minCTAs) == 24);
CHECK(config_max, offsetof(ncclConfig_t, maxCTAs) == 28);
CHECK(config_net, offsetof(ncclConfig_t, netName) == 32);
CHECK(config_split, offsetof(ncclConfig_t, splitShare) == 40);
CHECK(config_traffic, offsetof(ncclConfig_t, trafficClass) == 44);
CHECK(config_name, offsetof(ncclConfig_t, commName) == 48);
CHECK(config_collnet, offsetof(ncclConfig_t, collnetEnable) == 56);
CHECK(config_policy, offsetof(ncclConfig_t, CTAPolicy) == 60);
CHECK(config_shrink, offsetof(ncclConfig_t, shrinkShare) == 64);
CHECK(config_nvls, offsetof(ncclConfig_t, nvlsCTAs) == 68);
CHECK(config_channels, offsetof(ncclConfig_t, nChannelsPerNetPeer) == 72);
CHECK(config_nvlink, offsetof(ncclConfig_t, nvlinkCentricSched) == 76);
CHECK(sim_info_size, sizeof(ncclSimInfo_t) == 24);
CHECK(sim_info_magic, offsetof(ncclSimInfo_t, magic) == 8);
CHECK(sim_info_version, offsetof(ncclSimInfo_t, version) == 12);
CHECK(sim_info_time, offsetof(ncclSimInfo_t, estimatedTime) == 16);
CHECK(handles, sizeof(ncclComm_t) == sizeof(void*) && sizeof(ncclWindow_t) == sizeof(void*));
CHECK(flags, NCCL_WIN_DEFAULT == 0 && NCCL_WIN_COLL_SYMMETRIC == 1 && NCCL_SHRINK_DEFAULT == 0 &&
                 NCCL_SHRINK_ABORT == 1 && NCCL_REVOKE_DEFAULT == 0 && NCCL_SPLIT_NOCOLOR == -1);
CHECK(enumerations, sizeof(ncclResult_t) == 4 && sizeof(ncclDataType_t) == 4 && sizeof(ncclRedOp_t) == 4);
CHECK(results, ncclSuccess == 0 && ncclUnhandledCudaError == 1 && ncclSystemError == 2 && ncclInternalError == 3 &&
                   ncclInvalidArgument == 4 && ncclInvalidUsage == 5 && ncclRemoteError == 6 && ncclInProgress == 7 &&
                   ncclTimeout == 8 && ncclNumResults == 9);
CHECK(types, ncclInt8 == 0 && ncclChar == 0 && ncclUint8 == 1 && ncclInt32 == 2 && ncclInt == 2 && ncclUint32 == 3 &&
                 ncclInt64 == 4 && ncclUint64 == 5 && ncclFloat16 == 6 && ncclHalf == 6 && ncclFloat32 == 7 &&
                 ncclFloat == 7 && ncclFloat64 == 8 && ncclDouble == 8 && ncclBfloat16 == 9 && ncclFloat8e4m3 == 10 &&
                 ncclFloat8e5m2 == 11);
CHECK(operators, ncclSum == 0 && ncclProd == 1 && ncclMax == 2 && ncclMin == 3 && ncclAvg == 4 && ncclNumOps == 5 &&
                     ncclMaxRedOp == 0x7fffffff);
CHECK(version_codes, NCCL_VERSION(2, 8, 4) == 2804 && NCCL_VERSION(2, 28, 9) == 22809);
CHECK(telemetry, sizeof(ncclrunTelemetrySlot) == 192 && sizeof(ncclrunTelemetryPage) == NCCLRUN_TELEMETRY_BYTES);

int main(void) {
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  const ncclSimInfo_t simulation = NCCL_SIM_INFO_INITIALIZER;
  int version = 0;
  if (config.size != 80 || config.magic != 0xcafebeef || config.version != NCCL_VERSION_CODE ||
      config.blocking != INT_MIN || config.netName != NULL || config.nvlinkCentricSched != INT_MIN) {
    return fprintf(stderr, "NCCL_CONFIG_INITIALIZER fills the wrong fields\n"), 1;
  }
  if (simulation.magic != 0x74685283 || simulation.estimatedTime != -1.0f) {
    return fprintf(stderr, "NCCL_SIM_INFO_INITIALIZER fills the wrong fields\n"), 1;
  }
  if (ncclGetVersion(&version) != ncclSuccess || version != NCCL_VERSION_CODE) return 1;
  if (pncclGetVersion(&version) != ncclSuccess) return 1;
  return strchr(ncclrunVersion(), '+') == NULL;
}
