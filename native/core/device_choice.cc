#include "core/device_choice.h"

#include <cstdlib>
#include <string_view>

#include "device/cuda/kernels.h"

namespace ncclrun {

std::string whyNoCuda() {
  if (!cuda::haveKernels()) return "this build of the engine has no kernels: there was no nvcc where it was built";
  std::string why;
  cuda::driver(why);
  return why;
}

Status chooseDevice(ncclrunDevice_t wanted, std::optional<cuda::Gpu>& gpu) {
  gpu.reset();
  std::string asked = "the program asks for the CUDA device";
  if (wanted == ncclrunDeviceAutomatic) {
    const char* const variable = std::getenv("NCCLRUN_DEVICE");
    const std::string_view value = variable == nullptr ? "" : variable;
    if (value == "host") wanted = ncclrunDeviceHost;
    if (value == "cuda") wanted = ncclrunDeviceCuda;
    if (wanted == ncclrunDeviceAutomatic && !value.empty() && value != "auto") {
      return {ncclInvalidUsage, formatSentence("NCCLRUN_DEVICE=%s: known devices are cuda, host and auto", variable)};
    }
    if (wanted == ncclrunDeviceCuda) asked = "NCCLRUN_DEVICE=cuda";
  }
  if (wanted == ncclrunDeviceHost) return {};
  if (const std::string why = whyNoCuda(); !why.empty()) {
    if (wanted == ncclrunDeviceAutomatic) return {};
    return {ncclInvalidUsage, asked + ": " + why + ". Use the host device, with buffers in ordinary memory"};
  }
  cuda::Gpu found;
  Status status = cuda::currentGpu(found);
  if (status.ok()) gpu = found;
  return status;
}

}  // namespace ncclrun
