// Ranks for tests: each is a thread with its own DataPath and stream; ranks of one host share a segment.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "datapath/data_path.h"
#include "plan/segment_format.h"
#include "support/check.h"
#include "support/plan_builder.h"

namespace ncclrun::test {

// A memfd of that many zero bytes.
int makeSegment(uint64_t bytes);
// A listening TCP socket on 127.0.0.1; its port.
int makeListener(uint32_t& port);

class Rank {
 public:
  Rank(const std::vector<std::byte>& plan, int segmentFd, uint32_t rank, int listenFd, bool records = true);
  ~Rank();

  DataPath& path() { return *path_; }
  ncclrunStream_t stream() const { return stream_; }
  uint32_t number() const { return number_; }
  ncclrunTelemetrySlot telemetry{};
  // As the process has it, of this rank alone.
  std::unique_ptr<ncclrunRecorder> recorder = std::make_unique<ncclrunRecorder>();

  ncclResult_t connect();  // until it is no longer in progress
  ncclResult_t enqueue(std::vector<Operation> operations);
  ncclResult_t synchronize() { return ncclrunStreamSynchronize(stream_); }
  // Enqueues and waits.
  ncclResult_t run(std::vector<Operation> operations);
  ncclResult_t allReduce(const void* send, void* receive, size_t count, ncclDataType_t type = ncclFloat32,
                         ncclRedOp_t op = ncclSum);
  ncclResult_t barrier();
  std::vector<ncclrunEdge> edges();

 private:
  uint32_t number_;
  uint64_t operations_ = 0;
  uint64_t collectives_ = 0;
  std::unique_ptr<DataPath> path_;
  ncclrunStream_t stream_ = nullptr;
};

// What the ranks of one communicator share; made before they start (also before a fork).
class World {
 public:
  explicit World(PlanSpec spec);
  ~World();
  World(const World&) = delete;

  uint32_t size() const { return uint32_t(spec_.hostOf.size()); }
  const PlanSpec& spec() const { return spec_; }
  // `records`: the rank has a flight recorder.
  std::unique_ptr<Rank> join(uint32_t rank, bool records = true);
  // Runs body once per rank, each on a thread, and waits for all.
  void run(const std::function<void(Rank&)>& body);
  // Raises the abort word of a host as its agent would.
  void raiseAbort(uint32_t host, ncclResult_t code, uint32_t rank, const char* sentence);
  // Nobody listens for `rank` any more, unless it has joined already.
  void hangUp(uint32_t rank);
  uint32_t port(uint32_t rank) const { return spec_.ports[rank]; }

 private:
  PlanSpec spec_;
  std::vector<std::vector<std::byte>> plans_;
  std::vector<int> segments_, listeners_;
};

inline Operation allReduceOf(const void* send, void* receive, size_t count, ncclDataType_t type = ncclFloat32,
                             ncclRedOp_t op = ncclSum) {
  Operation operation;
  operation.collective = plan::Collective::allReduce;
  operation.send = send;
  operation.receive = receive;
  operation.count = count;
  operation.type = type;
  operation.op = op;
  return operation;
}
inline Operation sendOf(const void* data, size_t count, uint32_t peer, ncclDataType_t type = ncclInt8) {
  Operation operation;
  operation.collective = plan::Collective::sendRecv;
  operation.send = data;
  operation.count = count;
  operation.type = type;
  operation.peer = peer;
  return operation;
}
inline Operation receiveOf(void* data, size_t count, uint32_t peer, ncclDataType_t type = ncclInt8) {
  Operation operation = sendOf(nullptr, count, peer, type);
  operation.receive = data;
  return operation;
}

}  // namespace ncclrun::test
