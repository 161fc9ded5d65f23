#include "dl/gpu.h"

#include <cstdlib>
#include <cstring>

namespace ncclrun::cuda {

Status currentGpu(Gpu& out) {
  const Driver& cuda = driver();
  NCCLRUN_TRY(statusOf(cuda.ctxGetCurrent(&out.context), "cuCtxGetCurrent"));
  if (out.context == nullptr) {
    Device first = 0;
    NCCLRUN_TRY(statusOf(cuda.deviceGet(&first, 0), "cuDeviceGet"));
    NCCLRUN_TRY(statusOf(cuda.devicePrimaryCtxRetain(&out.context, first), "cuDevicePrimaryCtxRetain"));
    NCCLRUN_TRY(statusOf(cuda.ctxPushCurrent(out.context), "cuCtxPushCurrent"));
  }
  NCCLRUN_TRY(statusOf(cuda.ctxGetDevice(&out.device), "cuCtxGetDevice"));
  int sms = 0;
  NCCLRUN_TRY(statusOf(cuda.deviceGetAttribute(&sms, kAttributeSms, out.device), "cuDeviceGetAttribute"));
  out.sms = uint32_t(sms);
  char text[32] = "";
  NCCLRUN_TRY(statusOf(cuda.deviceGetPCIBusId(text, sizeof text, out.device), "cuDeviceGetPCIBusId"));
  out.busId = 0;  // the hexadecimal digits of 0000:3b:00.0
  for (const char* at = text; *at != '\0'; at++) {
    const char* const digits = "0123456789abcdef";
    const char* const digit = std::strchr(digits, *at | 0x20);
    if (digit != nullptr) out.busId = out.busId << 4 | uint64_t(digit - digits);
  }
  return {};
}

OnGpu::OnGpu(const Gpu& gpu) : captureMode_(kCaptureRelaxed) {
  Context current = nullptr;
  driver().ctxGetCurrent(&current);
  if (current != gpu.context) pushed_ = driver().ctxPushCurrent(gpu.context) == kSuccess;
  driver().threadExchangeStreamCaptureMode(&captureMode_);
}

OnGpu::~OnGpu() {
  driver().threadExchangeStreamCaptureMode(&captureMode_);
  Context popped = nullptr;
  if (pushed_) driver().ctxPopCurrent(&popped);
}

}  // namespace ncclrun::cuda
