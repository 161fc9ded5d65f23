#include <system_error>

#include "cuda/cuda_data_path.h"
#include "datapath/data_path.h"
#include "host/host_data_path.h"
#include "plan/plan_view.h"

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
