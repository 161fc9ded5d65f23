#include "communicator/device_choice.h"

#include <cstdlib>
#include <string_view>

#include "cuda/kernels.h"

namespace ncclrun {

namespace {

// The device that the caller or NCCLRUN_DEVICE wants, and who says so.
struct Wish {
  ncclrunDevice_t device;
  std::string source;
};

Status readWish(ncclrunDevice_t wanted, Wish& wish) {
  wish = {wanted, "the program asks for the CUDA device"};
  if (wanted != ncclrunDeviceAutomatic) return {};
  const char* const variable = std::getenv("NCCLRUN_DEVICE");
  const std::string_view value = variable == nullptr ? "" : variable;
  if (value == "host") wish.device = ncclrunDeviceHost;
  if (value == "cuda") wish = {ncclrunDeviceCuda, "NCCLRUN_DEVICE=cuda"};
  if (wish.device != ncclrunDeviceAutomatic || value.empty() || value == "auto") return {};
  return {ncclInvalidUsage, formatSentence("NCCLRUN_DEVICE=%s: known devices are cuda, host and auto", variable)};
}

std::string whyNoCuda() {
  std::string why;
  if (cuda::driver(why) == nullptr) return why;
  return cuda::whyNoKernels();
}

Status refused(const Wish& wish, const std::string& why) {
  const int gpus = cuda::visibleGpus();
  const std::string subject = wish.device == ncclrunDeviceCuda
                                  ? wish.source
                                  : formatSentence("this machine has %d GPU%s", gpus, gpus == 1 ? "" : "s");
  return {ncclInvalidUsage,
          subject + ", but " + why + ". NCCLRUN_DEVICE=host takes the host device, for buffers in ordinary memory"};
}

}  // namespace

std::string whyHostDevice(ncclrunDevice_t wanted) {
  if (wanted == ncclrunDeviceHost) return "the program asks for it";
  Wish wish;
  readWish(wanted, wish);
  return wish.device == ncclrunDeviceHost ? "NCCLRUN_DEVICE=host" : whyNoCuda();
}

Status chooseDevice(ncclrunDevice_t wanted, std::optional<cuda::Gpu>& gpu) {
  gpu.reset();
  Wish wish;
  NCCLRUN_TRY(readWish(wanted, wish));
  if (wish.device == ncclrunDeviceHost) return {};
  if (const std::string why = whyNoCuda(); !why.empty()) {
    const bool noGpu = cuda::visibleGpus() == 0;
    return noGpu && wish.device == ncclrunDeviceAutomatic ? Status{} : refused(wish, why);
  }
  cuda::Gpu found;
  NCCLRUN_TRY(cuda::currentGpu(found));
  if (const std::string why = cuda::whyNoCodeFor(found); !why.empty()) return refused(wish, why);
  gpu = found;
  return {};
}

}  // namespace ncclrun
