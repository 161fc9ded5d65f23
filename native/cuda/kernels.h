// Loads kernels: a file per module (cuda/kernels/*.cu), loaded into a GPU at its first use.
#pragma once
#include <cstdint>
#include <string>

#include "dl/gpu.h"
#include "nccl.h"
#include "plan/launch_format.h"
#include "plan/plan_format.h"

namespace ncclrun::cuda {

// Why there are none, and what to do, in sentences without the last end; empty: there are some.
std::string whyNoKernels();

// Why the kernels cannot run on the GPU, and what to do, in a sentence without its end; empty: they can.
std::string whyNoCodeFor(const Gpu& gpu);

// Selects the kernel of a launch.
struct Kernel {
  uint8_t module = 0;   // number of the file of kernels, below
  uint8_t opIndex = 0;  // of Launch
  bool operator==(const Kernel& other) const = default;
};
inline constexpr uint8_t kBytesModule = 0;

// For a reduction; `op` may be kPreMulSum; average: of whole numbers.
Kernel kernelFor(ncclDataType_t type, ncclRedOp_t op);

inline constexpr const char* kProbe = "ncclrunProbe";  // in the bytes' module

// True if a routine has a kernel for single-step launches.
bool hasSingleStepKernel(const Kernel& kernel, plan::Protocol protocol, Routine routine);
// True if that kernel takes several items, each on its own blocks: the kernels of routines in which a rank does not
// both send to a peer and receive from it.
bool isOneWay(Routine routine);

// `name` in a module of kernels, or the kernel of a protocol, for the GPU whose context is current. ncclInvalidUsage
// where there is no code for it.
Status load(const Gpu& gpu, uint8_t module, const char* name, Function& out);
Status load(const Gpu& gpu, const Kernel& kernel, plan::Protocol protocol, Routine routine, bool isSingleStep,
            Function& out);

// Bytes of dynamic shared memory of a launch.
uint32_t sharedBytesOf(plan::Protocol protocol, Routine routine);

// All kernels, in the GPU whose context is current. The driver may wait for kernels under way when it loads another
// one, and ours wait for those of peers: so none is loaded while one of ours runs. Where the driver has to compile them
// first, which takes up to a minute for a type, only those that move: the others come with a type's first operation.
Status loadAll(const Gpu& gpu);

}  // namespace ncclrun::cuda
