#include <system_error>

#include "cuda/cuda_data_path.h"
#include "datapath/data_path.h"
#include "host/host_data_path.h"
#include "plan/plan_view.h"

namespace ncclrun {

StatusOr<std::unique_ptr<DataPath>> DataPath::open(const Setup& setup) {
  try {
    if (!setup.gpu.has_value()) return openHostDataPath(setup);
    auto opened = std::make_unique<cuda::CudaDataPath>(setup, *setup.gpu);
    NCCLRUN_TRY(opened->start());
    return std::unique_ptr<DataPath>(std::move(opened));
  } catch (const std::system_error& error) {  // a thread could not be started
    return {ncclSystemError, error.what()};
  }
}

}  // namespace ncclrun
