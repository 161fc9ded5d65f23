// What a communicator can do for kernels of the program: nothing, which they find out here before they ask for it.
#include <algorithm>
#include <cstring>

#include "abi/call.h"
#include "abi/newer.h"

using namespace ncclrun;

namespace {

constexpr unsigned kMagic = 0xcafebeef;
constexpr size_t kHeaderBytes = offsetof(ncclCommProperties_t, rank);
// Of a version that has more fields than ours, so much is taken for a size.
constexpr size_t kMaxBytes = 4096;
// Before 2.29.7 the last field was one byte at this place.
constexpr unsigned kFirstWithGinType = 22904;
constexpr size_t kByteGinType = 34;

// Writes a field where the caller's structure has it.
template <typename Value>
void put(ncclCommProperties_t* props, size_t offset, Value value) {
  if (props->size < offset + sizeof value) return;
  std::memcpy(reinterpret_cast<char*>(props) + offset, &value, sizeof value);
}

ncclResult_t checkProperties(const char* function, const ncclCommProperties_t* props) {
  if (props->magic == kMagic && props->size >= kHeaderBytes && props->size <= kMaxBytes) return ncclSuccess;
  return fail(ncclInvalidUsage, "%s: props was not begun with NCCL_COMM_PROPERTIES_INITIALIZER: size %zu, magic 0x%x",
              function, props->size, props->magic);
}

void fill(ncclCommProperties_t* props, const Communicator& communicator) {
  const auto& gpu = communicator.gpu();
  put(props, offsetof(ncclCommProperties_t, rank), static_cast<int>(communicator.rank()));
  put(props, offsetof(ncclCommProperties_t, nRanks), static_cast<int>(communicator.size()));
  put(props, offsetof(ncclCommProperties_t, cudaDev), gpu.has_value() ? gpu->device : -1);
  put(props, offsetof(ncclCommProperties_t, nvmlDev), -1);
  put(props, offsetof(ncclCommProperties_t, deviceApiSupport), false);
  put(props, offsetof(ncclCommProperties_t, multimemSupport), false);
  if (props->version < kFirstWithGinType) return put(props, kByteGinType, uint8_t{0});
  // Nothing is there: false, none or 0 in every field, also in those that versions after ours have added.
  constexpr size_t kFrom = offsetof(ncclCommProperties_t, ginType);
  if (props->size > kFrom) std::memset(reinterpret_cast<char*>(props) + kFrom, 0, props->size - kFrom);
  put(props, offsetof(ncclCommProperties_t, nLsaTeams), static_cast<int>(communicator.size()));
}

}  // namespace

NCCLRUN_EXPORT ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t* props) {
  constexpr const char* kName = "ncclCommQueryProperties";
  return call(kName, [&] {
    if (const auto bad = checkPointer(kName, "props", props); bad != ncclSuccess) return bad;
    const auto communicator = lookUp(kName, comm);
    if (communicator == nullptr) return ncclInvalidArgument;
    if (const auto bad = checkProperties(kName, props); bad != ncclSuccess) return bad;
    if (communicator->ready(kName) == nullptr) return whyNotReady(*communicator);
    fill(props, *communicator);
    return ncclSuccess;
  });
}
NCCLRUN_TWIN(ncclCommQueryProperties);
