#include "device/cuda/kernels.h"

#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

#include "device/cuda/launch_format.h"
#include "device/host/fold.h"
#include "generated/fatbins.h"

namespace ncclrun::cuda {
namespace {

// In the order of generated/fatbins.h.
enum : uint8_t { kBytes = kBytesModule, kFloat16, kFloat32, kFloat8, kInteger32, kInteger64, kInteger8 };

struct Place {
  uint8_t module;
  bool second;
};

Place placeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return {kInteger8, true};
    case ncclUint8:
      return {kInteger8, false};
    case ncclInt32:
      return {kInteger32, true};
    case ncclUint32:
      return {kInteger32, false};
    case ncclInt64:
      return {kInteger64, true};
    case ncclUint64:
      return {kInteger64, false};
    case ncclFloat16:
      return {kFloat16, false};
    case ncclBfloat16:
      return {kFloat16, true};
    case ncclFloat32:
      return {kFloat32, false};
    case ncclFloat64:
      return {kFloat32, true};
    case ncclFloat8e4m3:
      return {kFloat8, false};
    default:
      return {kFloat8, true};
  }
}

// As device/cuda/block.cuh makes them: some routines have a kernel of their own under LL and LL128, not for types of
// one byte.
const char* nameOf(uint8_t module, plan::Protocol protocol, Routine routine) {
  static constexpr const char* kOfAll[] = {"ncclrunSimple", "ncclrunLines64", "ncclrunLines128"};
  const bool wide = protocol == plan::Protocol::ll128;
  const bool none = module == kFloat8 || module == kInteger8;
  if (none || protocol == plan::Protocol::simple) return kOfAll[uint8_t(protocol)];
  switch (routine) {
    case Routine::allReduceOneShot:
      return wide ? "ncclrunLines128OneShot" : "ncclrunLines64OneShot";
    case Routine::allReduceTwoShot:
      return wide ? "ncclrunLines128TwoShot" : "ncclrunLines64TwoShot";
    case Routine::reduceScatterDirect:
      return wide ? "ncclrunLines128Scattering" : "ncclrunLines64Scattering";
    case Routine::allGatherDirect:
      return wide ? "ncclrunLines128Gathering" : "ncclrunLines64Gathering";
    case Routine::broadcastDirect:
      return wide ? "ncclrunLines128Broadcasting" : "ncclrunLines64Broadcasting";
    case Routine::allToAll:
      return wide ? "ncclrunLines128Exchanging" : "ncclrunLines64Exchanging";
    case Routine::send:
    case Routine::receive:
      return wide ? "ncclrunLines128Passing" : "ncclrunLines64Passing";
    case Routine::barrier:
      return wide ? "ncclrunLines128Meeting" : "ncclrunLines64Meeting";
    default:
      return kOfAll[uint8_t(protocol)];
  }
}

bool isWhole(uint8_t module) { return module == kInteger8 || module == kInteger32 || module == kInteger64; }

}  // namespace

bool haveKernels() { return kFatbins[kBytesModule] != nullptr; }

Kernel kernelFor(ncclDataType_t type, ncclRedOp_t op) {
  const auto [module, second] = placeOf(type);
  const bool whole = isWhole(module);
  switch (op) {
    case ncclSum:
      return {module, kindOf(second && !whole, Fold::sum)};
    case ncclProd:
      return {module, kindOf(second && !whole, Fold::prod)};
    case ncclMax:
      return {module, kindOf(second, Fold::max)};
    case ncclMin:
      return {module, kindOf(second, Fold::min)};
    case ncclAvg:
      if (whole) return {module, kindOf(second, Fold::average)};
      [[fallthrough]];
    default:
      return {module, kindOf(second && !whole, Fold::preMulSum)};
  }
}

Status load(const Gpu& gpu, uint8_t module, const char* name, Function& out) {
  static std::mutex mutex;
  static auto& modules = *new std::map<std::pair<Context, uint8_t>, Module>;
  static auto& functions = *new std::map<std::tuple<Context, uint8_t, std::string_view>, Function>;
  std::lock_guard lock(mutex);
  auto& function = functions[{gpu.context, module, name}];
  out = function;
  if (out != nullptr) return {};
  auto& loaded = modules[{gpu.context, module}];
  if (loaded == nullptr) {
    Status status = statusOf(driver().moduleLoadData(&loaded, kFatbins[module]), "the kernels cannot be loaded");
    if (!status.ok()) return status;
  }
  Status status = statusOf(driver().moduleGetFunction(&function, loaded, name), name);
  out = function;
  return status;
}

Status load(const Gpu& gpu, uint8_t module, plan::Protocol protocol, Routine routine, Function& out) {
  return load(gpu, module, nameOf(module, protocol, routine), out);
}

}  // namespace ncclrun::cuda
