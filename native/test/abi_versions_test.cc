// What programs of other versions of the interface bring and call: shorter and longer structures, names that are there
// although nothing is behind them; and buffers that are registered, groups that are only simulated.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "abi/newer.h"
#include "expect.h"
#include "ncclrun.h"
#include "support/plan_builder.h"

namespace {

using namespace ncclrun;

// One rank, whose plan predicts this many microseconds for everything, and for each MiB so many more.
struct Alone {
  int segment;
  ncclComm_t comm = nullptr;

  explicit Alone(float microseconds, float perMebibyte = 0) {
    auto variant = test::variant(plan::Algorithm::ring, 1, 4096);
    variant.predictedMicroseconds = microseconds;
    variant.predictedMicrosecondsPerMebibyte = perMebibyte;
    const auto bytes = test::encode(test::oneHost(1, variant), 0);
    plan::Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    segment = memfd_create("segment", MFD_CLOEXEC);
    EXPECT(segment >= 0 && ftruncate(segment, static_cast<off_t>(header.segmentBytes)) == 0);
    EXPECT_RESULT(ncclrunCommInitPlan(&comm, bytes.data(), bytes.size(), segment, 0, -1), ncclSuccess, "");
  }
  ~Alone() {
    ncclCommDestroy(comm);
    close(segment);
  }
};

// Refused for its id, which comes after the configuration: that one was accepted.
constexpr const char* kAccepted = "the unique id was not made";

// A structure of an older version: `size` bytes of ours, and after its last field whatever was there.
ncclResult_t initWith(unsigned version, size_t size, size_t fields, const ncclConfig_t& values) {
  alignas(ncclConfig_t) unsigned char memory[512];
  std::memset(memory, 0x5a, sizeof memory);
  std::memcpy(memory, &values, fields < sizeof values ? fields : sizeof values);
  auto* config = reinterpret_cast<ncclConfig_t*>(memory);
  config->size = size;
  config->version = version;
  ncclComm_t comm;
  return ncclCommInitRankConfig(&comm, 1, ncclUniqueId{}, 0, config);
}

// Bytes of a caller's structure, and rubbish behind them.
struct Properties {
  alignas(ncclCommProperties_t) unsigned char memory[256];
  Properties(size_t size, unsigned version, unsigned magic = 0xcafebeef) {
    std::memset(memory, 0x5a, sizeof memory);
    get()->size = size;
    get()->magic = magic;
    get()->version = version;
  }
  ncclCommProperties_t* get() { return reinterpret_cast<ncclCommProperties_t*>(memory); }
  // Number of bytes up to the last that is no rubbish.
  size_t written() const {
    size_t last = sizeof memory;
    while (last > 0 && memory[last - 1] == 0x5a) last--;
    return last;
  }
};

void properties() {
  const Alone alone(10);
  Properties newest(144, 23100);
  EXPECT_RESULT(ncclCommQueryProperties(alone.comm, newest.get()), ncclSuccess, "");
  const ncclCommProperties_t& all = *newest.get();
  EXPECT(all.rank == 0 && all.nRanks == 1 && all.cudaDev == -1 && all.nvmlDev == -1);
  EXPECT(!all.deviceApiSupport && !all.multimemSupport && all.ginType == 0 && all.nLsaTeams == 1);
  EXPECT(!all.hostRmaSupport && all.railedGinType == 0 && newest.written() == 144);
  Properties shorter(56, 23007);
  EXPECT_RESULT(ncclCommQueryProperties(alone.comm, shorter.get()), ncclSuccess, "");
  EXPECT(shorter.written() == 56);
  Properties first(40, 22902);  // a byte of what ginType became, then padding
  EXPECT_RESULT(ncclCommQueryProperties(alone.comm, first.get()), ncclSuccess, "");
  EXPECT(first.written() == 35 && !first.get()->deviceApiSupport);
  Properties cut(24, 23007);
  EXPECT_RESULT(ncclCommQueryProperties(alone.comm, cut.get()), ncclSuccess, "");
  EXPECT(cut.written() == 24 && cut.get()->nRanks == 1);
  Properties wrong(56, 23007, 0);
  EXPECT_RESULT(ncclCommQueryProperties(alone.comm, wrong.get()), ncclInvalidUsage, "NCCL_COMM_PROPERTIES_INITIALIZER");
  EXPECT_RESULT(ncclCommQueryProperties(alone.comm, nullptr), ncclInvalidArgument, "props is NULL");
  EXPECT_RESULT(ncclDevCommCreate(alone.comm, nullptr, nullptr), ncclInvalidUsage, "no device API");
}

void configurations() {
  const ncclConfig_t values = NCCL_CONFIG_INITIALIZER;
  struct Version {
    unsigned version;
    size_t size;
    size_t fields;  // bytes up to the end of the last field
  };
  const Version versions[] = {
      {21400, 24, 20}, {21700, 40, 40}, {21800, 48, 44}, {22500, 48, 48}, {22700, 72, 72},
      {22800, 80, 80}, {22809, 80, 80}, {22900, 88, 80}, {23007, 96, 80}, {23100, 200, 80},
  };
  for (const auto& [version, size, fields] : versions) {
    EXPECT_RESULT(initWith(version, size, fields, values), ncclInvalidArgument, kAccepted);
    ncclConfig_t wrong = values;
    wrong.blocking = 7;
    EXPECT_RESULT(initWith(version, size, fields, wrong), ncclInvalidArgument, "config.blocking is 7");
  }
  ncclConfig_t wrong = values;
  wrong.splitShare = 7;
  EXPECT_RESULT(initWith(21700, 40, 40, wrong), ncclInvalidArgument, kAccepted);
  EXPECT_RESULT(initWith(21800, 48, 44, wrong), ncclInvalidArgument, "config.splitShare is 7");
  wrong = values;
  wrong.trafficClass = -5;
  EXPECT_RESULT(initWith(21800, 48, 48, wrong), ncclInvalidArgument, kAccepted);
  EXPECT_RESULT(initWith(22500, 48, 48, wrong), ncclInvalidArgument, "config.trafficClass is -5");
  EXPECT_RESULT(initWith(22809, 19, 19, values), ncclInvalidArgument, "NCCL_CONFIG_INITIALIZER: size 19");
}

void scalable() {
  ncclUniqueId ids[2] = {};
  ncclComm_t comm;
  EXPECT_RESULT(ncclCommInitRankScalable(&comm, 1, 0, 1, nullptr, nullptr), ncclInvalidArgument, "commIds is NULL");
  EXPECT_RESULT(ncclCommInitRankScalable(&comm, 1, 0, 0, ids, nullptr), ncclInvalidArgument, "nId is 0");
  EXPECT_RESULT(ncclCommInitRankScalable(&comm, 1, 0, 2, ids, nullptr), ncclInvalidArgument, "nId is 2");
  EXPECT_RESULT(ncclCommInitRankScalable(&comm, 2, 0, 2, ids, nullptr), ncclInvalidArgument,
                "commIds[1]: the unique id");
  EXPECT_RESULT(ncclCommInitRankScalable(&comm, 2, 0, 1, ids, nullptr), ncclInvalidArgument, kAccepted);
}

void registrations() {
  Alone one(0), other(0);
  char buffer[64];
  void* handle = buffer;
  ncclWindow_t window = nullptr;
  void* address = nullptr;
  EXPECT_RESULT(ncclCommRegister(one.comm, nullptr, 64, &handle), ncclInvalidArgument, "buff is NULL");
  EXPECT(handle == nullptr);
  EXPECT_RESULT(ncclCommRegister(one.comm, buffer, 0, &handle), ncclInvalidArgument, "size is 0");
  EXPECT_RESULT(ncclCommRegister(one.comm, buffer, 64, nullptr), ncclInvalidArgument, "handle is NULL");
  EXPECT_RESULT(ncclCommRegister(one.comm, buffer, 64, &handle), ncclSuccess, "");
  EXPECT(handle != nullptr);
  EXPECT_RESULT(ncclCommWindowRegister(one.comm, buffer, 64, &window, 0x100), ncclInvalidArgument, "winFlags is 0x100");
  EXPECT_RESULT(ncclCommWindowRegister(one.comm, buffer, 64, &window, NCCL_WIN_COLL_SYMMETRIC), ncclSuccess, "");
  EXPECT_RESULT(ncclWinGetUserPtr(one.comm, window, &address), ncclSuccess, "");
  EXPECT(address == buffer);
  EXPECT_RESULT(ncclWinGetUserPtr(other.comm, window, &address), ncclInvalidArgument, "is not registered");
  EXPECT_RESULT(ncclCommDeregister(other.comm, handle), ncclInvalidArgument, "is not registered");
  EXPECT_RESULT(ncclCommDeregister(one.comm, window), ncclInvalidArgument, "is not registered");
  EXPECT_RESULT(ncclCommWindowDeregister(one.comm, reinterpret_cast<ncclWindow_t>(handle)), ncclInvalidArgument,
                "is not registered");
  EXPECT_RESULT(ncclCommDeregister(one.comm, handle), ncclSuccess, "");
  EXPECT_RESULT(ncclCommDeregister(one.comm, handle), ncclInvalidArgument, "or no longer");
  EXPECT_RESULT(ncclCommWindowDeregister(one.comm, window), ncclSuccess, "");
  EXPECT_RESULT(ncclCommDeregister(one.comm, nullptr), ncclSuccess, "");
  EXPECT_RESULT(ncclCommWindowDeregister(one.comm, nullptr), ncclSuccess, "");
  EXPECT_RESULT(ncclCommRegister(nullptr, buffer, 64, &handle), ncclInvalidArgument, "comm is NULL");
}

void simulation() {
  Alone predicted(7.5F), silent(0);
  const float value = 1;
  float result = 0;
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  const auto queue = [&](ncclComm_t comm) {
    return ncclAllReduce(&value, &result, 1, ncclFloat32, ncclSum, comm, nullptr);
  };
  EXPECT_RESULT(ncclGroupSimulateEnd(&info), ncclInvalidUsage, "ncclGroupSimulateEnd: no ncclGroupStart");
  EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
  EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
  for (int i = 0; i < 2; i++) EXPECT_RESULT(queue(predicted.comm), ncclSuccess, "");
  EXPECT_RESULT(ncclGroupSimulateEnd(&info), ncclSuccess, "");
  EXPECT(info.estimatedTime == NCCL_UNDEF_FLOAT);  // an inner end
  EXPECT_RESULT(ncclGroupSimulateEnd(&info), ncclSuccess, "");
  EXPECT(info.estimatedTime == 15);
  EXPECT_RESULT(ncclrunStreamSynchronize(nullptr), ncclSuccess, "");
  EXPECT(result == 0);  // nothing was begun

  EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
  EXPECT_RESULT(queue(predicted.comm), ncclSuccess, "");
  EXPECT_RESULT(queue(silent.comm), ncclSuccess, "");
  EXPECT_RESULT(ncclGroupSimulateEnd(&info), ncclSuccess, "");
  EXPECT(info.estimatedTime == NCCL_UNDEF_FLOAT);

  Alone growing(7.5F, 2);
  EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
  EXPECT_RESULT(ncclAllReduce(&value, &result, 3 << 18, ncclFloat32, ncclSum, growing.comm, nullptr), ncclSuccess, "");
  EXPECT_RESULT(ncclGroupSimulateEnd(&info), ncclSuccess, "");
  EXPECT(info.estimatedTime == 13.5);

  ncclSimInfo_t wrong{};
  EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
  EXPECT_RESULT(ncclGroupSimulateEnd(&wrong), ncclInvalidArgument, "NCCL_SIM_INFO_INITIALIZER");
  EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
  EXPECT_RESULT(ncclGroupSimulateEnd(nullptr), ncclInvalidArgument, "simInfo is NULL");
  EXPECT_RESULT(ncclGroupEnd(), ncclInvalidUsage, "no ncclGroupStart");  // both groups have ended
}

void teams() {
  Alone one(0);
  const ncclTeam_t world = ncclTeamWorld(one.comm);
  EXPECT(world.nRanks == 1 && world.rank == 0 && world.stride == 1);
  EXPECT(ncclTeamLsa(one.comm).nRanks == 1 && ncclTeamRail(one.comm).nRanks == 1);
  EXPECT(ncclTeamRankToWorld(one.comm, world, 0) == 0 && ncclTeamRankToLsa(one.comm, world, 0) == 0);
  EXPECT(ncclTeamWorld(nullptr).nRanks == 0 && ncclTeamRankToWorld(nullptr, world, 0) == -1);
  EXPECT(std::strstr(ncclGetLastError(nullptr), "ncclTeamRankToWorld: comm is NULL") != nullptr);
}

void statistics() {
  Alone one(0);
  for (int stat = 0; stat < 4; stat++) {
    uint64_t bytes = 1;
    EXPECT_RESULT(ncclCommMemStats(one.comm, stat, &bytes), ncclSuccess, "");
    EXPECT(bytes == 0);  // on the host device
  }
  uint64_t bytes;
  EXPECT_RESULT(ncclCommMemStats(one.comm, 4, &bytes), ncclInvalidArgument, "no statistic 4");
  EXPECT_RESULT(ncclCommMemStats(one.comm, 3, nullptr), ncclInvalidArgument, "value is NULL");
}

void unavailable() {
  ncclUniqueId id;
  EXPECT_RESULT(ncclCommGetUniqueId(nullptr, &id), ncclInvalidUsage, "ncclCommGetUniqueId: this library does not add");
  EXPECT_RESULT(ncclCommSuspend(nullptr, 1), ncclInvalidUsage, "ncclCommSuspend: ");
  EXPECT_RESULT(ncclSignal(0, 0, 0, 0, nullptr, nullptr), ncclInvalidUsage, "one-sided");
  EXPECT_RESULT(ncclDevCommCreate(nullptr, nullptr, nullptr), ncclInvalidUsage, "no device API");
  EXPECT_RESULT(ncclParamBind(nullptr, "NCCL_DEBUG"), ncclInvalidUsage, "parameters");
  EXPECT(ncclLLA2ACalcSlots(1, 8) == -1);
  EXPECT_RESULT(ncclGroupStart(), ncclSuccess, "");
  EXPECT_RESULT(ncclWaitSignal(0, nullptr, nullptr, nullptr), ncclInvalidUsage, "one-sided");
  EXPECT_RESULT(ncclGroupEnd(), ncclInvalidUsage, "ncclWaitSignal: ");
  ncclResetDebugInit();
}

}  // namespace

int main() {
  properties();
  configurations();
  scalable();
  registrations();
  simulation();
  teams();
  statistics();
  unavailable();
  return 0;
}
