#include "cuda/kernels.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "base/debug.h"
#include "cuda/kernel_files.h"
#include "datapath/reduce.h"
#include "plan/launch_format.h"

namespace ncclrun::cuda {
namespace {

// In the order of kModuleNames.
enum : uint8_t { kBytes = kBytesModule, kFloat16, kFloat32, kFloat8, kInteger32, kInteger64, kInteger8 };

struct ModuleType {
  uint8_t module;
  bool second;
};

ModuleType moduleOf(ncclDataType_t type) {
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

bool isSum(const Kernel& kernel) {
  const RedOp redOp = RedOp(kernel.opIndex % kRedOps);
  return redOp == RedOp::sum || redOp == RedOp::preMulSum;
}

bool isOfOneByte(const Kernel& kernel) { return kernel.module == kFloat8 || kernel.module == kInteger8; }

// Names of the kernels that cuda/kernels/block.cuh defines for single routines: some routines have one under LL and
// LL128, some of these for sums only; types of one byte have none.
std::string nameAlone(const Kernel& kernel, Routine routine) {
  if (isOfOneByte(kernel)) return "";
  const std::string sum = !isSum(kernel) ? "" : kernel.opIndex >= kRedOps ? "SecondSum" : "FirstSum";
  switch (routine) {
    case Routine::allReduceOneShot:
      return "OneShot" + sum;
    case Routine::allReduceTwoShot:
      return sum.empty() ? "" : "TwoShot" + sum;
    case Routine::reduceScatterDirect:
      return sum.empty() ? "" : "ReduceScatter" + sum;
    case Routine::allGatherDirect:
      return "AllGather";
    case Routine::broadcastDirect:
      return "Broadcast";
    case Routine::allToAll:
      return "AllToAll";
    case Routine::send:
    case Routine::receive:
      return "SendReceive";
    default:
      return "";
  }
}

// The same for single-step launches.
std::string singleStepName(const Kernel& kernel, Routine routine) {
  switch (routine) {
    case Routine::reduceDirect:
      return kernel.opIndex >= kRedOps ? "ReduceToRootSecondSum" : "ReduceToRootFirstSum";
    case Routine::gather:
      return "Gather";
    case Routine::scatter:
      return "Scatter";
    case Routine::copy:
      return "SendReceive";
    default:
      return nameAlone(kernel, routine);
  }
}

std::string nameOf(const Kernel& kernel, plan::Protocol protocol, Routine routine, bool isSingleStep) {
  static constexpr const char* kOfAll[] = {"ncclrunSimple", "ncclrunLL", "ncclrunLL128"};
  if (routine == Routine::barrier) return "ncclrunBarrier";
  if (routine == Routine::mixed) return "ncclrunMixed";
  const std::string name = kOfAll[uint8_t(protocol)];
  if (protocol == plan::Protocol::simple) return name;
  return isSingleStep ? name + "SingleStep" + singleStepName(kernel, routine) : name + nameAlone(kernel, routine);
}

constexpr const char* kModuleNames[] = {"bytes",     "float16_bfloat16", "float32_float64", "float8",
                                        "integer32", "integer64",        "integer8"};

int capabilityOf(const Gpu& gpu) {
  int major = 0, minor = 0;
  driver().deviceGetAttribute(&major, kAttributeMajor, gpu.device);
  driver().deviceGetAttribute(&minor, kAttributeMinor, gpu.device);
  return 10 * major + minor;
}

// Machine code runs on GPUs of the same major compute capability and the same or a higher minor one; PTX runs on all
// newer GPUs.
bool hasMachineCode(const Gpu& gpu) {
  if (haveOtherKernels()) return true;
  const int own = capabilityOf(gpu);
  return std::ranges::any_of(kernelArchitectures().machineCode,
                             [own](int one) { return one / 10 == own / 10 && one <= own; });
}

std::string text(int capability) { return formatSentence("%d.%d", capability / 10, capability % 10); }

// "8.0 and 9.0, and as PTX for 8.0 and newer".
std::string capabilitiesOfKernels() {
  const KernelArchitectures& all = kernelArchitectures();
  std::string list;
  for (size_t i = 0; i < all.machineCode.size(); i++) {
    const bool isLast = i + 1 == all.machineCode.size();
    list += (i == 0 ? "" : isLast ? " and " : ", ") + text(all.machineCode[i]);
  }
  if (all.ptx == 0) return list;
  return list + (list.empty() ? "PTX for " : ", and as PTX for ") + text(all.ptx) + " and newer";
}

std::string otherArchitecture(const Gpu& gpu) {
  const int own = capabilityOf(gpu);
  return formatSentence(
      "GPU %d has compute capability %s, and the kernels in %s are for %s. Where nvcc is, ncclrun build --kernels %d "
      "makes kernels for it",
      gpu.device, text(own).c_str(), kernelsDirectory().c_str(), capabilitiesOfKernels().c_str(), own);
}

std::string olderDriver() {
  int version = 0;
  driver().driverGetVersion(&version);
  return formatSentence(
      "the driver supports CUDA %d.%d and cannot read kernels made by this build's newer nvcc. Install a newer driver, "
      "or build with an nvcc of that version",
      version / 1000, version % 1000 / 10);
}

// The driver caches its output in ~/.nv/ComputeCache.
void logCompiling(const Gpu& gpu, const std::string& path) {
  const int own = capabilityOf(gpu);
  logInfo(
      formatSentence("the driver compiles %s for GPU %d, which takes up to a minute the first time: the PTX there "
                     "is for any newer GPU. ncclrun build --kernels %d makes machine code for this one",
                     path.c_str(), gpu.device, own));
}

Status loadModule(const Gpu& gpu, uint8_t module, Module& out) {
  std::string image, path;
  NCCLRUN_TRY(readKernels(kModuleNames[module], image, path));
  if (!hasMachineCode(gpu)) logCompiling(gpu, path);
  const Result result = driver().moduleLoadData(&out, image.data());
  Status status = statusOf(result, formatSentence("the kernels in %s cannot be loaded", path.c_str()).c_str());
  const std::string remedy = result == kNoBinaryForGpu                               ? otherArchitecture(gpu)
                             : result == kUnsupportedPtx || result == kNoJitCompiler ? olderDriver()
                                                                                     : "";
  if (!remedy.empty()) return {ncclInvalidUsage, status.sentence + ": " + remedy};
  return status;
}

bool isWhole(uint8_t module) { return module == kInteger8 || module == kInteger32 || module == kInteger64; }

}  // namespace

std::string whyNoKernels() {
  if (haveOtherKernels() || kernelArchitectures().any()) return {};
  return formatSentence("there are no kernels for GPUs in %s. Where nvcc is, ncclrun build --kernels makes them",
                        kernelsDirectory().c_str());
}

std::string whyNoCodeFor(const Gpu& gpu) {
  const int ptx = kernelArchitectures().ptx;
  return hasMachineCode(gpu) || (ptx != 0 && ptx <= capabilityOf(gpu)) ? std::string() : otherArchitecture(gpu);
}

Kernel kernelFor(ncclDataType_t type, ncclRedOp_t op) {
  const auto [module, second] = moduleOf(type);
  const bool whole = isWhole(module);
  switch (op) {
    case ncclSum:
      return {module, opIndexOf(second && !whole, RedOp::sum)};
    case ncclProd:
      return {module, opIndexOf(second && !whole, RedOp::prod)};
    case ncclMax:
      return {module, opIndexOf(second, RedOp::max)};
    case ncclMin:
      return {module, opIndexOf(second, RedOp::min)};
    case ncclAvg:
      if (whole) return {module, opIndexOf(second, RedOp::average)};
      [[fallthrough]];
    default:
      return {module, opIndexOf(second && !whole, RedOp::preMulSum)};
  }
}

// As Routines::kOneWay of cuda/kernels/block.cuh.
bool isOneWay(Routine routine) {
  switch (routine) {
    case Routine::copy:
    case Routine::reduceDirect:
    case Routine::broadcastDirect:
    case Routine::gather:
    case Routine::scatter:
    case Routine::send:
    case Routine::receive:
      return true;
    default:
      return false;
  }
}

// Called for every launch.
bool hasSingleStepKernel(const Kernel& kernel, plan::Protocol protocol, Routine routine) {
  if (protocol == plan::Protocol::simple || isOfOneByte(kernel)) return false;
  switch (routine) {
    case Routine::copy:
      return kernel.module == kBytes;
    case Routine::allReduceTwoShot:
    case Routine::reduceScatterDirect:
    case Routine::reduceDirect:
      return isSum(kernel);
    case Routine::allReduceOneShot:
    case Routine::allGatherDirect:
    case Routine::allToAll:
      return true;
    default:
      return isOneWay(routine);
  }
}

Status load(const Gpu& gpu, uint8_t module, const char* name, Function& out) {
  static std::mutex mutex;
  static auto& modules = *new std::map<std::pair<Context, uint8_t>, Module>;
  static auto& functions = *new std::map<std::tuple<Context, uint8_t, std::string>, Function>;
  std::lock_guard lock(mutex);
  auto& function = functions[{gpu.context, module, name}];
  if (function == nullptr) {
    auto& loaded = modules[{gpu.context, module}];
    Status status;
    if (loaded == nullptr) status = loadModule(gpu, module, loaded);
    if (status.ok()) status = statusOf(driver().moduleGetFunction(&function, loaded, name), name);
    int registers = 0;  // the driver really loads a function when something is asked of it
    if (status.ok()) status = statusOf(driver().funcGetAttribute(&registers, kFunctionRegisters, function), name);
    if (!status.ok()) return status;
  }
  out = function;
  return {};
}

uint32_t sharedBytesOf(plan::Protocol protocol, Routine routine) {
  if (protocol != plan::Protocol::simple && routine != Routine::mixed) return 0;
  return routine == Routine::reducePulled ? kPullSpaceBytes : kBulkSpaceBytes;
}

Status load(const Gpu& gpu, const Kernel& kernel, plan::Protocol protocol, Routine routine, bool isSingleStep,
            Function& out) {
  static std::mutex mutex;
  using Key = std::tuple<Context, uint8_t, uint8_t, plan::Protocol, Routine, bool>;
  static auto& functions = *new std::map<Key, Function>;
  std::lock_guard lock(mutex);
  auto& function = functions[{gpu.context, kernel.module, kernel.opIndex, protocol, routine, isSingleStep}];
  if (function == nullptr) {
    const std::string name = nameOf(kernel, protocol, routine, isSingleStep);
    Status status = load(gpu, kernel.module, name.c_str(), function);
    if (status.ok() && sharedBytesOf(protocol, routine) > 0) {  // other routines may share this kernel
      constexpr int kMax = int(std::max(kBulkSpaceBytes, kPullSpaceBytes));
      status =
          statusOf(driver().funcSetAttribute(function, kFunctionMaxDynamicSharedBytes, kMax), "cuFuncSetAttribute");
    }
    if (!status.ok()) {
      function = nullptr;
      return status;
    }
  }
  out = function;
  return {};
}

Status loadAll(const Gpu& gpu) {
  const auto loadRoutines = [&](const Kernel& kernel, Routine first, Routine last) {
    for (const auto protocol : {plan::Protocol::simple, plan::Protocol::ll, plan::Protocol::ll128}) {
      for (uint8_t routine = uint8_t(first); routine <= uint8_t(last); routine++) {
        Function function = nullptr;
        Status status = load(gpu, kernel, protocol, Routine(routine), false, function);
        if (status.ok() && hasSingleStepKernel(kernel, protocol, Routine(routine)))
          status = load(gpu, kernel, protocol, Routine(routine), true, function);
        if (!status.ok()) return status;
      }
    }
    return Status{};
  };
  Status status = loadRoutines({kBytesModule, 0}, Routine::allGatherDirect, Routine::mixed);
  if (!hasMachineCode(gpu)) return status;
  for (int type = 0; type < ncclNumTypes; type++) {
    for (int op = 0; op <= ncclNumOps && status.ok(); op++) {  // the last: a pre-multiplied sum
      const auto kernel = kernelFor(ncclDataType_t(type), ncclRedOp_t(op));
      status = loadRoutines(kernel, Routine::copy, Routine::reducePulled);
    }
  }
  return status;
}

}  // namespace ncclrun::cuda
