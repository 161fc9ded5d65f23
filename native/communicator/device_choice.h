// On which device a communicator lives: NCCLRUN_DEVICE, or what there is.
#pragma once
#include <optional>
#include <string>

#include "base/error.h"
#include "dl/gpu.h"
#include "ncclrun.h"

namespace ncclrun {

// The GPU that the calling thread uses, or none: the host device. Where `wanted` is automatic, NCCLRUN_DEVICE decides:
// cuda, host or auto (the default), which is cuda where the driver shows a GPU. ncclInvalidUsage where the GPU cannot
// be used: its program's buffers are in GPU memory, so another device would not do.
Status chooseDevice(ncclrunDevice_t wanted, std::optional<cuda::Gpu>& gpu);

// Why chooseDevice() has taken the host device.
std::string whyHostDevice(ncclrunDevice_t wanted);

}  // namespace ncclrun
