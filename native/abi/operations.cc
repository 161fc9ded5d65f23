// Operations and groups: check the arguments, then queue.
#include <limits>
#include <optional>
#include <tuple>

#include "abi/arguments.h"
#include "abi/call.h"
#include "base/debug.h"
#include "base/element.h"
#include "communicator/pointer_check.h"
#include "ncclrun.h"

using namespace ncclrun;
using plan::Collective;

namespace {

// What a call brings, for the checks. Buffers that a rank does not use are not given.
struct Request {
  const char* function;
  Collective collective;
  ncclComm_t comm;
  cudaStream_t stream;
  size_t count = 0;
  int type = ncclInt8;
  int op = ncclSum;
  const void* send = nullptr;
  void* receive = nullptr;
  bool sends = false;
  bool sendsAtRoot = false;
  bool receives = false;
  bool receivesAtRoot = false;
  const char* otherName = nullptr;  // "peer" or "root", if there is one
  int other = 0;
};

// Stands for the buffer of a call that moves no element: which of send and receive is set still tells them apart.
char nothing;

// `made`: the operator that the program made, if the call's is one.
ncclResult_t checkOperator(const Request& request, const Communicator& communicator,
                           std::optional<UserOperator>& made) {
  if (request.op >= 0 && request.op < ncclNumOps) return ncclSuccess;
  made = communicator.operators().find(request.op);
  if (!made.has_value()) {
    return fail(ncclInvalidArgument, "%s: operator %d does not exist%s", request.function, request.op,
                request.op < 0
                    ? ""
                    : "; one made by ncclRedOpCreatePreMulSum serves its own communicator, until it is destroyed");
  }
  if (made->type == request.type) return ncclSuccess;
  return fail(ncclInvalidArgument, "%s: operator %d was made for datatype %d, the call has datatype %d",
              request.function, request.op, int(made->type), request.type);
}

ncclResult_t check(const Request& request, const Communicator& communicator, std::optional<UserOperator>& made) {
  const char* function = request.function;
  if (request.type < 0 || request.type >= ncclNumTypes) {
    return fail(ncclInvalidArgument, "%s: datatype %d does not exist", function, request.type);
  }
  if (const auto bad = checkOperator(request, communicator, made); bad != ncclSuccess) return bad;
  if (request.otherName != nullptr &&
      (request.other < 0 || static_cast<uint32_t>(request.other) >= communicator.size())) {
    return fail(ncclInvalidArgument, "%s: %s is %d; the communicator has ranks 0 to %u", function, request.otherName,
                request.other, communicator.size() - 1);
  }
  if (request.count > std::numeric_limits<ptrdiff_t>::max() / elementBytes(static_cast<ncclDataType_t>(request.type)) /
                          communicator.size()) {
    return fail(ncclInvalidArgument, "%s: count %zu is more than memory can hold", function, request.count);
  }
  const bool isRoot = static_cast<uint32_t>(request.other) == communicator.rank();
  const bool sends = request.sends || (request.sendsAtRoot && isRoot);
  const bool receives = request.receives || (request.receivesAtRoot && isRoot);
  for (const auto& [used, buffer, name] :
       {std::tuple(sends, request.send, "sendbuff"),
        std::tuple(receives, static_cast<const void*>(request.receive), "recvbuff")}) {
    if (used && buffer == nullptr && request.count > 0) {
      return fail(ncclInvalidArgument, "%s: %s is NULL, count is %zu", function, name, request.count);
    }
    if (used && request.count > 0 && !communicator.gpu().has_value()) {
      if (Status status = checkHostPointer(function, name, buffer); !status.ok()) return fail(status);
    }
  }
  return ncclSuccess;
}

void traceRequest(const Request& request) {
  std::string line = formatSentence("%s(%p,%p,%zu,%d,%d", request.function, request.send, request.receive,
                                    request.count, request.type, request.op);
  if (request.otherName != nullptr) line += formatSentence(",%s %d", request.otherName, request.other);
  traceCall(line + formatSentence(",%p,%p)", static_cast<const void*>(request.comm),
                                  static_cast<const void*>(request.stream)));
}

ncclResult_t queue(const Request& request) noexcept {
  return callInGroup(request.function, [&] {
    if (debugs(DebugLevel::trace)) traceRequest(request);
    const auto communicator = lookUp(request.function, request.comm);
    if (communicator == nullptr) return ncclInvalidArgument;
    if (communicator->ready(request.function) == nullptr) return whyNotReady(*communicator);
    std::optional<UserOperator> made;
    if (const auto bad = check(request, *communicator, made); bad != ncclSuccess) return bad;
    const auto stream = reinterpret_cast<ncclrunStream_t>(request.stream);
    if (const Status status = communicator->checkStream(stream); !status.ok())
      return fail(status.code, "%s: %s", request.function, status.sentence.c_str());
    Operation operation;
    operation.collective = request.collective;
    operation.send = request.sends && request.send == nullptr ? &nothing : request.send;
    operation.receive = request.receives && request.receive == nullptr ? &nothing : request.receive;
    operation.count = request.count;
    operation.type = static_cast<ncclDataType_t>(request.type);
    operation.op = static_cast<ncclRedOp_t>(request.op);
    if (made.has_value()) {
      operation.op = ncclNumOps;  // one number for all of them: what other ranks call theirs does not matter
      operation.scalarAt = made->scalarAt;
      operation.scalar = made->scalar;
    }
    operation.peer = static_cast<uint32_t>(request.other);
    return Group::current().add(communicator, operation, stream);
  });
}

ncclResult_t broadcast(const char* function, const void* send, void* receive, size_t count, int type, int root,
                       ncclComm_t comm, cudaStream_t stream) noexcept {
  return queue({.function = function,
                .collective = Collective::broadcast,
                .comm = comm,
                .stream = stream,
                .count = count,
                .type = type,
                .send = send,
                .receive = receive,
                .sendsAtRoot = true,
                .receives = true,
                .otherName = "root",
                .other = root});
}

}  // namespace

NCCLRUN_EXPORT ncclResult_t ncclGroupStart(void) {
  return call("ncclGroupStart", [] {
    Group::current().begin();
    return ncclSuccess;
  });
}
NCCLRUN_TWIN(ncclGroupStart);

NCCLRUN_EXPORT ncclResult_t ncclGroupEnd(void) {
  return call("ncclGroupEnd", [] { return Group::current().end(); });
}
NCCLRUN_TWIN(ncclGroupEnd);

NCCLRUN_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  return call("ncclGroupSimulateEnd", [&] { return Group::current().simulateEnd(simInfo); });
}
NCCLRUN_TWIN(ncclGroupSimulateEnd);

NCCLRUN_EXPORT ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                          ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return queue({.function = "ncclAllReduce",
                .collective = Collective::allReduce,
                .comm = comm,
                .stream = stream,
                .count = count,
                .type = raw(datatype),
                .op = raw(op),
                .send = sendbuff,
                .receive = recvbuff,
                .sends = true,
                .receives = true});
}
NCCLRUN_TWIN(ncclAllReduce);

NCCLRUN_EXPORT ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return queue({.function = "ncclAllGather",
                .collective = Collective::allGather,
                .comm = comm,
                .stream = stream,
                .count = sendcount,
                .type = raw(datatype),
                .send = sendbuff,
                .receive = recvbuff,
                .sends = true,
                .receives = true});
}
NCCLRUN_TWIN(ncclAllGather);

NCCLRUN_EXPORT ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                              ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                              cudaStream_t stream) {
  return queue({.function = "ncclReduceScatter",
                .collective = Collective::reduceScatter,
                .comm = comm,
                .stream = stream,
                .count = recvcount,
                .type = raw(datatype),
                .op = raw(op),
                .send = sendbuff,
                .receive = recvbuff,
                .sends = true,
                .receives = true});
}
NCCLRUN_TWIN(ncclReduceScatter);

NCCLRUN_EXPORT ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                          int root, ncclComm_t comm, cudaStream_t stream) {
  return broadcast("ncclBroadcast", sendbuff, recvbuff, count, raw(datatype), root, comm, stream);
}
NCCLRUN_TWIN(ncclBroadcast);

NCCLRUN_EXPORT ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                                      cudaStream_t stream) {
  return broadcast("ncclBcast", buff, buff, count, raw(datatype), root, comm, stream);
}
NCCLRUN_TWIN(ncclBcast);

NCCLRUN_EXPORT ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                       ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return queue({.function = "ncclReduce",
                .collective = Collective::reduce,
                .comm = comm,
                .stream = stream,
                .count = count,
                .type = raw(datatype),
                .op = raw(op),
                .send = sendbuff,
                .receive = recvbuff,
                .sends = true,
                .receivesAtRoot = true,
                .otherName = "root",
                .other = root});
}
NCCLRUN_TWIN(ncclReduce);

NCCLRUN_EXPORT ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                         ncclComm_t comm, cudaStream_t stream) {
  return queue({.function = "ncclAlltoAll",
                .collective = Collective::allToAll,
                .comm = comm,
                .stream = stream,
                .count = count,
                .type = raw(datatype),
                .send = sendbuff,
                .receive = recvbuff,
                .sends = true,
                .receives = true});
}
NCCLRUN_TWIN(ncclAlltoAll);

NCCLRUN_EXPORT ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                       int root, ncclComm_t comm, cudaStream_t stream) {
  return queue({.function = "ncclGather",
                .collective = Collective::gather,
                .comm = comm,
                .stream = stream,
                .count = count,
                .type = raw(datatype),
                .send = sendbuff,
                .receive = recvbuff,
                .sends = true,
                .receivesAtRoot = true,
                .otherName = "root",
                .other = root});
}
NCCLRUN_TWIN(ncclGather);

NCCLRUN_EXPORT ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                        int root, ncclComm_t comm, cudaStream_t stream) {
  return queue({.function = "ncclScatter",
                .collective = Collective::scatter,
                .comm = comm,
                .stream = stream,
                .count = count,
                .type = raw(datatype),
                .send = sendbuff,
                .receive = recvbuff,
                .sendsAtRoot = true,
                .receives = true,
                .otherName = "root",
                .other = root});
}
NCCLRUN_TWIN(ncclScatter);

NCCLRUN_EXPORT ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                                     ncclComm_t comm, cudaStream_t stream) {
  return queue({.function = "ncclSend",
                .collective = Collective::sendRecv,
                .comm = comm,
                .stream = stream,
                .count = count,
                .type = raw(datatype),
                .send = sendbuff,
                .sends = true,
                .otherName = "peer",
                .other = peer});
}
NCCLRUN_TWIN(ncclSend);

NCCLRUN_EXPORT ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                                     cudaStream_t stream) {
  return queue({.function = "ncclRecv",
                .collective = Collective::sendRecv,
                .comm = comm,
                .stream = stream,
                .count = count,
                .type = raw(datatype),
                .receive = recvbuff,
                .receives = true,
                .otherName = "peer",
                .other = peer});
}
NCCLRUN_TWIN(ncclRecv);

NCCLRUN_EXPORT ncclResult_t ncclrunBarrier(ncclComm_t comm, ncclrunStream_t stream) {
  return queue({.function = "ncclrunBarrier",
                .collective = Collective::barrier,
                .comm = comm,
                .stream = reinterpret_cast<cudaStream_t>(stream)});
}
