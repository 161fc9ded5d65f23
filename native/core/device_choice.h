// On which device a communicator lives: NCCLRUN_DEVICE, or what there is.
#pragma once
#include <optional>

#include "core/error.h"
#include "device/cuda/gpu.h"
#include "ncclrun.h"

namespace ncclrun {

// The GPU that the calling thread uses, or none: the host device. Where `wanted` is automatic, NCCLRUN_DEVICE decides:
// cuda, host or auto (the default), which is cuda where this build has kernels and the machine a GPU. ncclInvalidUsage
// where cuda is asked for in vain.
Status chooseDevice(ncclrunDevice_t wanted, std::optional<cuda::Gpu>& gpu);

// Why auto would choose the host device; empty if it would not.
std::string whyNoCuda();

}  // namespace ncclrun
