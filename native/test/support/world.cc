#include "support/world.h"

#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "plan/plan_view.h"
#include "plan/segment.h"

namespace ncclrun::test {

int makeSegment(uint64_t bytes) {
  const int fd = memfd_create("ncclrun-test", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, off_t(bytes)) != 0) abort();
  return fd;
}

int makeListener(uint32_t& port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 128) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    abort();
  }
  port = ntohs(address.sin_port);
  return fd;
}

Rank::Rank(const std::vector<std::byte>& plan, int segmentFd, uint32_t rank, int listenFd, bool records)
    : number_(rank) {
  telemetry.state = ncclrunStateIdle;
  const DataPath::Setup setup{
      .plan = plan,
      .segmentFd = segmentFd,
      .rank = rank,
      .listenFd = listenFd,
      .telemetry = {&telemetry, [](ncclrunTelemetrySlot*) {}},
      .recorder = records ? std::make_shared<RecorderClaim>(recorder.get(), uint16_t{7}) : nullptr};
  auto opened = DataPath::open(setup);
  EXPECT_MORE(opened.ok(), opened.status().sentence);
  if (!opened.ok()) abort();
  path_ = std::move(opened.value());
  EXPECT(ncclrunStreamCreate(&stream_) == ncclSuccess);
}

Rank::~Rank() {
  path_.reset();
  ncclrunStreamDestroy(stream_);
}

ncclResult_t Rank::connect() {
  Status status = path_->connect();
  while (status.code == ncclInProgress) {
    std::this_thread::yield();
    status = path_->connect();
  }
  return status.code;
}

ncclResult_t Rank::enqueue(std::vector<Operation> operations) {
  for (auto& operation : operations) {
    operation.number = ++operations_;
    if (operation.collective != plan::Collective::sendRecv) collectives_++;
    operation.hashed = collectives_;
  }
  return result(path_->enqueue(operations, stream_, nullptr));
}

ncclResult_t Rank::run(std::vector<Operation> operations) {
  const ncclResult_t queued = enqueue(std::move(operations));
  return queued == ncclSuccess ? synchronize() : queued;
}

ncclResult_t Rank::allReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op) {
  return run({allReduceOf(send, receive, count, type, op)});
}

ncclResult_t Rank::barrier() {
  Operation operation;
  operation.collective = plan::Collective::barrier;
  return run({operation});
}

std::vector<ncclrunEdge> Rank::edges() {
  std::vector<ncclrunEdge> all(path_->edges({}));
  path_->edges(all);
  return all;
}

World::World(PlanSpec spec) : spec_(std::move(spec)) {
  listeners_.assign(size(), -1);
  uint32_t hosts = 1;
  for (uint32_t host : spec_.hostOf) hosts = std::max(hosts, host + 1);
  if (hosts > 1 || spec_.sameHost == plan::Transport::socket) {
    spec_.ports.resize(size());
    for (uint32_t rank = 0; rank < size(); rank++) listeners_[rank] = makeListener(spec_.ports[rank]);
  }
  for (uint32_t host = 0; host < hosts; host++) {
    plans_.push_back(encode(spec_, host));
    plan::Header header;
    memcpy(&header, plans_[host].data(), sizeof header);
    segments_.push_back(makeSegment(header.segmentBytes));
  }
}

World::~World() {
  for (int fd : segments_) close(fd);
  for (int fd : listeners_) {
    if (fd >= 0) close(fd);
  }
}

void World::hangUp(uint32_t rank) {
  close(listeners_[rank]);
  listeners_[rank] = -1;
}

std::unique_ptr<Rank> World::join(uint32_t rank, bool records) {
  const uint32_t host = spec_.hostOf[rank];
  const int listener = listeners_[rank] >= 0 ? dup(listeners_[rank]) : -1;
  return std::make_unique<Rank>(plans_[host], segments_[host], rank, listener, records);
}

void World::run(const std::function<void(Rank&)>& body) {
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < size(); rank++) {
    threads.emplace_back([&, rank] {
      const auto me = join(rank);
      EXPECT_MORE(me->connect() == ncclSuccess, me->path().asyncError().sentence);
      body(*me);
    });
  }
  for (auto& thread : threads) thread.join();
}

void World::raiseAbort(uint32_t host, ncclResult_t code, uint32_t rank, const char* sentence) {
  PlanView plan;
  EXPECT(plan.open(plans_[host]).ok());
  Segment segment;
  EXPECT(segment.map(segments_[host], plan).ok());
  AbortBlock& block = segment.abortBlock();
  block.flag.store(1);
  block.rank = rank;
  strncpy(block.sentence, sentence, sizeof block.sentence - 1);
  block.flag.store(2 + code);
  for (uint32_t local = 0; local < plan.header().localRanks; local++) {
    segment.doorbell(local).sequence.fetch_add(1);
    futexWakeAll(segment.doorbell(local).sequence);
  }
}

}  // namespace ncclrun::test
