#include "core/data_path.h"

#include <system_error>

#include "core/cuda_data_path.h"
#include "core/host_data_path.h"
#include "core/plan_view.h"

namespace ncclrun {

ncclResult_t DataPath::open(const Setup& setup, std::unique_ptr<DataPath>& out) {
  Status status;
  try {
    if (!setup.gpu.has_value()) {
      status = openHostDataPath(setup, out);
    } else {
      auto opened = std::make_unique<cuda::CudaDataPath>(setup, *setup.gpu);
      status = opened->start();
      if (status.ok()) out = std::move(opened);
    }
  } catch (const std::system_error& error) {  // a thread could not be started
    status = {ncclSystemError, error.what()};
  }
  return status.ok() ? ncclSuccess : fail(status);
}

}  // namespace ncclrun
