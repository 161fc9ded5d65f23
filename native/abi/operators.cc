// Operators made by the program.
#include <cstring>

#include "abi/arguments.h"
#include "abi/call.h"
#include "base/element.h"
#include "communicator/pointer_check.h"

using namespace ncclrun;

NCCLRUN_EXPORT ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                                     ncclScalarResidence_t residence, ncclComm_t comm) {
  constexpr const char* kName = "ncclRedOpCreatePreMulSum";
  return callInGroup(kName, [&] {
    if (const auto bad = checkPointer(kName, "op", op); bad != ncclSuccess) return bad;
    if (const auto bad = checkPointer(kName, "scalar", scalar); bad != ncclSuccess) return bad;
    const int type = raw(datatype);
    const int where = raw(residence);
    if (type < 0 || type >= ncclNumTypes)
      return fail(ncclInvalidArgument, "%s: datatype %d does not exist", kName, type);
    if (where != ncclScalarDevice && where != ncclScalarHostImmediate) {
      return fail(ncclInvalidArgument, "%s: residence %d does not exist", kName, where);
    }
    const auto communicator = lookUp(kName, comm);
    if (communicator == nullptr) return ncclInvalidArgument;
    if (where == ncclScalarHostImmediate || !communicator->gpu().has_value()) {
      if (Status status = checkHostPointer(kName, "scalar", scalar); !status.ok()) return fail(status);
    }
    UserOperator made{datatype, where == ncclScalarDevice ? scalar : nullptr, 0};
    if (where == ncclScalarHostImmediate) std::memcpy(&made.scalar, scalar, elementBytes(datatype));
    *op = communicator->operators().add(made);
    return ncclSuccess;
  });
}
NCCLRUN_TWIN(ncclRedOpCreatePreMulSum);

NCCLRUN_EXPORT ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return callInGroup("ncclRedOpDestroy", [&] {
    const auto communicator = lookUp("ncclRedOpDestroy", comm);
    if (communicator == nullptr) return ncclInvalidArgument;
    const int number = raw(op);
    if (communicator->operators().remove(number)) return ncclSuccess;
    return fail(ncclInvalidArgument, "ncclRedOpDestroy: operator %d %s", number,
                number >= 0 && number < ncclNumOps ? "is NCCL's own; only those made by ncclRedOpCreatePreMulSum end"
                                                   : "was not made for this communicator, or was destroyed before");
  });
}
NCCLRUN_TWIN(ncclRedOpDestroy);
