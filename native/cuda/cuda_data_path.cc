#include "cuda/cuda_data_path.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/debug.h"
#include "base/descriptor.h"
#include "base/thread.h"
#include "cuda/cuda_memory_use.h"
#include "cuda/ring_positions.h"
#include "datapath/node_barrier.h"
#include "plan/rail_shape.h"
#include "plan/variants.h"

namespace ncclrun::cuda {
namespace {

// NCCLRUN_COPY_TIMEOUT_US in nanoseconds; negative if it is not set.
double configuredTimeout() {
  const char* const value = std::getenv("NCCLRUN_COPY_TIMEOUT_US");
  char* end = nullptr;
  const double microseconds = value == nullptr ? -1 : std::strtod(value, &end);
  return value == nullptr || end == value || *end != '\0' ? -1 : microseconds * 1000;
}

}  // namespace

Resources::~Resources() {
  net.reset();  // says goodbye
  const OnGpu here(gpu);
  if (probed != nullptr) driver().eventDestroy(probed);
  if (stream != nullptr) driver().streamDestroy(stream);
  if (pinned != nullptr) driver().memFreeHost(pinned);
}

// Waits until no kernel uses the resources. Peers' running kernels still store into this GPU's memory; this rank waits
// for a peer that died or keeps its communicator not much longer than an abort takes.
void Resources::awaitIdle() const {
  const OnGpu here(gpu);
  if (order != nullptr) order->await();
  if (stream != nullptr) driver().streamSynchronize(stream);
  if (regions == nullptr) return;
  regions->publishRest();
  constexpr auto kMax = std::chrono::seconds(5);
  const auto until = std::chrono::steady_clock::now() + kMax;
  while (!regions->allRest() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

namespace {

// Held while memory is freed, and for good once the process exits, because the driver is about to exit too. The driver
// frees memory only when the whole GPU is idle, for which an exiting process does not wait long.
constexpr auto kMaxAtExit = std::chrono::seconds(1);
std::timed_mutex& freeing() {
  static auto& mutex = *new std::timed_mutex;
  static const int registered = std::atexit([] { (void)freeing().try_lock_for(kMaxAtExit); });
  (void)registered;
  return mutex;
}

// A callback of the driver for a destroyed graph must not call the driver.
thread_local bool onDriversThread = false;

// Frees the resources on a thread: kernels may wait for peers, and the driver frees memory only when the whole GPU is
// idle, which must not block the caller, who may have more communicators to destroy.
void freeSoon(Resources* resources) {
  std::timed_mutex& mutex = freeing();
  const auto free = [resources, &mutex] {
    resources->awaitIdle();
    std::lock_guard lock(mutex);
    delete resources;
  };
  try {
    startThread("ncclrun-free", free).detach();
  } catch (const std::system_error&) {
    if (!onDriversThread) free();  // else the memory is lost
  }
}

void endHold(void* held) {
  onDriversThread = true;
  delete static_cast<std::shared_ptr<Resources>*>(held);
  onDriversThread = false;
}

}  // namespace

CudaDataPath::CudaDataPath(const Setup& setup, const Gpu& gpu)
    : setup_(setup),
      resources_(new Resources(gpu, setup.telemetry), freeSoon),
      telemetry_(setup.telemetry.get()),
      calls_(resources_->plan, resources_->segment, setup.rank),
      remoteCalls_(resources_->plan, setup.rank),
      copyTimeout_(configuredTimeout()) {}

CudaDataPath::~CudaDataPath() {
  if (resources_->netRegions != nullptr) resources_->netRegions->listen(nullptr, nullptr);
  const bool mayBeReplayed = resources_->order != nullptr && resources_->order->everCaptured();
  if (!idle())
    abort({ncclInvalidUsage, "the communicator was destroyed while operations were under way"}, FailureScope::alone);
  if (resources_->copies != nullptr) resources_->copies->engines().stopReporting();
  // While the process certainly goes on: the goodbye takes a while.
  if (!mayBeReplayed) resources_->net.reset();
  if (resources_->net != nullptr) resources_->net->endAtExit();
}

Status CudaDataPath::start() {
  Descriptor listening(setup_.listenFd);
  Resources& mine = *resources_;
  mine.planBytes.assign(setup_.plan.begin(), setup_.plan.end());
  NCCLRUN_TRY(mine.plan.openFor(plan::Device::cuda, setup_.rank, mine.planBytes));
  const auto& header = plan().header();
  if (header.localRanks > kMaxPeers) {
    return {ncclInvalidUsage,
            formatSentence("%u GPUs on one host; this version of the engine connects at most %u there",
                           header.localRanks, kMaxPeers)};
  }
  NCCLRUN_TRY(mine.segment.map(setup_.segmentFd, plan()));
  for (uint32_t host = 0; host < header.hosts; host++) hostNames_.emplace_back(plan().hostName(host));
  mine.interrupt = std::make_unique<Interrupt>(mine.segment.abortBlock(), ownBell(), setup_.telemetry.get());
  startLoading();
  const OnGpu here(mine.gpu);
  const Driver& cuda = driver();
  NCCLRUN_TRY(statusOf(cuda.streamCreate(&mine.stream, kStreamNonBlocking), "cuStreamCreate"));
  NCCLRUN_TRY(statusOf(cuda.eventCreate(&mine.probed, kEventNoTiming), "cuEventCreate"));
  mine.order = std::make_unique<LaunchOrder>(mine.gpu);
  NCCLRUN_TRY(mine.order->make(mine.stream));
  mine.share = std::make_unique<SmShare>(mine.gpu, [&order = *mine.order] { return order.query() != kNotReady; });
  void* pinned = nullptr;
  NCCLRUN_TRY(statusOf(cuda.memHostAlloc(&pinned, sizeof(PinnedState), kHostPortable | kHostMapped), "cuMemHostAlloc"));
  mine.pinned = new (pinned) PinnedState{};
  NCCLRUN_TRY(mine.sharedPages.pin(mine.gpu, &mine.segment.abortBlock(), mine.segment.sharedWithGpus()));
  mine.regions = std::make_unique<Regions>(mine.gpu, plan(), mine.segment, setup_.rank);
  NCCLRUN_TRY(mine.regions->allocate(mine.stream));
  NCCLRUN_TRY(startNetwork(std::move(listening)));
  NCCLRUN_TRY(makeTables());
  NCCLRUN_TRY(statusOf(cuda.streamSynchronize(mine.stream), "cuStreamSynchronize"));
  return mine.regions->publish();
}

// Loads the kernels while the ranks connect.
void CudaDataPath::startLoading() {
  const auto loaded = std::make_shared<std::promise<Status>>();
  loading_ = loaded->get_future();
  const auto load = [loaded, gpu = resources_->gpu] {
    const OnGpu here(gpu);
    loaded->set_value(loadAll(gpu));
  };
  try {
    startThread("ncclrun-load", load).detach();
  } catch (const std::system_error&) {
    load();
  }
}

// Allocates what the kernels need beside the regions in one piece of memory: the connections' states, initially zero,
// the ring positions and the rings themselves.
Status CudaDataPath::makeTables() {
  Resources& mine = *resources_;
  const auto& header = plan().header();
  std::vector<uint32_t> rings;
  for (uint32_t channel = 0; channel < header.channels; channel++) {
    for (uint32_t index = 0; index < header.ranks; index++) rings.push_back(plan().ring(channel, index));
  }
  // The ranks by host lie behind the rings.
  const std::vector<uint32_t> byHost = ranksByHost(plan());
  rings.insert(rings.end(), byHost.begin(), byHost.end());
  const TableLayout layout(plan().slots(), header.ranks);
  NCCLRUN_TRY(mine.tables.allocate(mine.gpu, layout.bytes, mine.stream));
  return fillTable(layout.rings, rings.data(), rings.size() * sizeof(uint32_t));
}

Status CudaDataPath::fillTable(size_t at, const void* from, size_t bytes) {
  const Resources& mine = *resources_;
  Status status =
      statusOf(driver().memcpyAsync(mine.tables.pointer() + at, reinterpret_cast<Pointer>(from), bytes, mine.stream),
               "cuMemcpyAsync");
  if (!status.ok()) return status;
  // The copy reads what the caller may free.
  return statusOf(driver().streamSynchronize(mine.stream), "cuStreamSynchronize");
}

// Called once the memory that reaches each peer is known.
Status CudaDataPath::makeRingPositions() {
  const Regions& regions = *resources_->regions;
  const uint32_t ranks = plan().header().ranks;
  std::vector<PeerRegions> byPeer;
  for (uint32_t peer = 0; peer < ranks; peer++) byPeer.push_back({pairRegions(peer), ringRegions(peer)});
  const auto positions = ringPositions(plan(), regions.slots(), setup_.rank, byPeer);
  return fillTable(TableLayout(regions.slots(), ranks).ringPositions, positions.data(),
                   positions.size() * sizeof(RingPosition));
}

Status CudaDataPath::connect() {
  Resources& mine = *resources_;
  const OnGpu here(mine.gpu);
  if (loading_.valid()) {
    if (loading_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {ncclInProgress, {}};
    NCCLRUN_TRY(loading_.get());
  }
  if (launcher_ == nullptr) {
    NCCLRUN_TRY(mine.regions->connect());
    if (mine.net != nullptr) NCCLRUN_TRY(mine.net->connected());
    NCCLRUN_TRY(makeLauncher());
    NCCLRUN_TRY(beginProbe());
  }
  return endProbe();
}

Status CudaDataPath::makeLauncher() {
  Resources& mine = *resources_;
  const auto& header = plan().header();
  Launch& launch = constants_;
  const auto at = []<class T>(Pointer pointer, T*& out) { out = reinterpret_cast<T*>(pointer); };
  for (uint32_t peer = 0; peer < header.ranks; peer++) {
    if (!plan().sameHost(peer)) continue;
    const RegionPair regions = pairRegions(peer);
    if (mine.netRegions != nullptr) {
      mine.netRegions->enter(peer, regions);
    } else {
      launch.out[peer] = regions.out;
      launch.in[peer] = regions.in;
    }
  }
  if (mine.netRegions != nullptr) launch.pairs = mine.netRegions->pairs();
  NCCLRUN_TRY(makeRingPositions());
  const TableLayout layout(mine.regions->slots(), header.ranks);
  at(mine.tables.pointer() + layout.sends, launch.sends);
  at(mine.tables.pointer() + layout.receives, launch.receives);
  at(mine.tables.pointer() + layout.ringPositions, launch.ringPositions);
  at(mine.tables.pointer() + layout.rings, launch.rings);
  std::vector<uint32_t> railPeers;
  if (hasRails(plan::Device::cuda, header.hosts, plan().ranksOfEachHost())) {
    at(mine.tables.pointer() + layout.byHost, launch.byHost);
    RailPosition position = railPosition(plan(), setup_.rank);
    launch.hosts = uint16_t(position.hosts);
    launch.host = uint16_t(position.host);
    launch.locals = uint16_t(position.locals);
    launch.local = uint16_t(position.local);
    railPeers = std::move(position.peers);
  }
  at(mine.sharedPages.pointerTo(&mine.segment.abortBlock().flag), launch.aborted);
  launch.aborted2 = &mine.pinned->aborted;
  launch.slots = mine.regions->slots();
  launch.divisor = 1;
  launch.rank = uint16_t(setup_.rank);
  launch.ranks = uint16_t(header.ranks);
  launcher_ = std::make_unique<Launcher>(mine.gpu, plan(), setup_.rank, launch, std::move(railPeers), *mine.share);
  // In a hardware queue that ranks share, the work that a wait needs may stand behind it.
  if (header.ranks > 1 && header.hosts == 1 && mine.regions->allReach() && mine.regions->queuesApart())
    mine.copies =
        std::make_unique<DirectCopies>(mine.gpu, plan(), mine.segment, interrupt(), setup_.rank, mine.sharedPages);
  runner_ = std::make_unique<Runner>(plan(), setup_.rank, *launcher_, mine.copies.get());
  logInfo(sentenceOf(memoryUse(launch.slots, header.ranks, header.localRanks), mine.gpu.device), Subsystem::alloc);
  return {};
}

// Called when the probe kernel, which reports its clock, has just ended.
Status CudaDataPath::reportWaits() {
  if (setup_.telemetry == nullptr) return {};
  Pointer state = 0, since = 0;
  Status status = pinnedForever(resources_->gpu, &setup_.telemetry->state, state);
  if (status.ok()) status = pinnedForever(resources_->gpu, &setup_.telemetry->lastProgressNs, since);
  if (!status.ok()) return status;
  const uint64_t clock = std::atomic_ref(resources_->pinned->clock).load(std::memory_order_acquire);
  launcher_->reportTo({reinterpret_cast<uint32_t*>(state), reinterpret_cast<uint64_t*>(since), nowNanoseconds() - clock,
                       ncclrunStateIdle, ncclrunStateWaiting});
  return {};
}

Status CudaDataPath::beginProbe() {
  Resources& mine = *resources_;
  const uint32_t ranks = plan().header().ranks;
  if (ranks == 1) probe_ = Probe::agreed;
  if (probe_ != Probe::none) return {};
  testsLines_ = mine.regions->allReach() && plan().header().hosts == 1;
  Function function = nullptr;
  NCCLRUN_TRY(load(mine.gpu, kBytesModule, kProbe, function));
  uint32_t* wrong = testsLines_ ? &mine.pinned->tornWords : nullptr;
  uint64_t* clock = &mine.pinned->clock;
  void* parameters[] = {&constants_, &wrong, &clock};
  Status status = statusOf(
      driver().launchKernel(function, testsLines_ ? ranks : 1, 1, 1, 512, 1, 1, 0, mine.stream, parameters, nullptr),
      "cuLaunchKernel");
  if (status.ok()) status = statusOf(driver().eventRecord(mine.probed, mine.stream), "cuEventRecord");
  probe_ = Probe::running;
  return status;
}

Status CudaDataPath::endProbe() {
  Resources& mine = *resources_;
  if (probe_ == Probe::running) {
    const Result result = driver().eventQuery(mine.probed);
    if (result == kNotReady) return {ncclInProgress, {}};
    if (result != kSuccess) return statusOf(result, "the first kernel");
    const uint32_t torn = std::atomic_ref(mine.pinned->tornWords).load(std::memory_order_acquire);
    mine.regions->publishTornLines(testsLines_ ? torn : ~0u);
    NCCLRUN_TRY(reportWaits());
    probe_ = Probe::published;
  }
  if (probe_ == Probe::agreed) return {};
  Status status = mine.regions->agreeOnLL128(hasLL128_);
  if (status.ok()) probe_ = Probe::agreed;
  return status;
}

// A graph may be launched after its communicator was destroyed.
Status CudaDataPath::retainForGraph(Stream stream, uint64_t capture) {
  constexpr size_t kRemembered = 64;
  if (capture == 0 || retainingCaptures_.contains(capture)) return {};
  const Driver& cuda = driver();
  Graph graph = nullptr;
  int active = kCaptureNone;
  uint64_t id = 0;
  UserObject object = nullptr;
  Status status =
      statusOf(cuda.streamGetCaptureInfo(stream, &active, &id, &graph, nullptr, nullptr), "cuStreamGetCaptureInfo");
  if (!status.ok()) return status;
  auto held = std::make_unique<std::shared_ptr<Resources>>(resources_);
  status = statusOf(cuda.userObjectCreate(&object, held.get(), endHold, 1, kUserObjectNoDestructorSync),
                    "cuUserObjectCreate");
  if (!status.ok()) return status;
  held.release();
  status = statusOf(cuda.graphRetainUserObject(graph, object, 1, kGraphTakesReference), "cuGraphRetainUserObject");
  if (!status.ok()) {
    cuda.userObjectRelease(object, 1);
    return status;
  }
  retainingCaptures_.insert(capture);
  if (retainingCaptures_.size() > kRemembered) retainingCaptures_.erase(retainingCaptures_.begin());
  return {};
}

// True if no running or captured operation uses mapped peer buffers.
bool CudaDataPath::areBuffersUnused() const {
  return !resources_->order->everCaptured() && resources_->order->query() == kSuccess;
}

// Does nothing if it would block a call, or if the process exits.
void CudaDataPath::tidyBuffers() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  std::unique_lock alive(freeing(), std::try_to_lock);
  if (!alive.owns_lock()) return;
  const OnGpu here(resources_->gpu);
  resources_->copies->tidy([this] { return areBuffersUnused(); });
}

void CudaDataPath::forgetBuffer(const RegisteredBuffer& buffer) {
  std::lock_guard lock(mutex_);
  if (resources_->copies == nullptr) return;
  const OnGpu here(resources_->gpu);
  resources_->copies->release(buffer.address);
}

Status CudaDataPath::order(ncclrunStream_t later, ncclrunStream_t earlier) {
  const OnGpu here(resources_->gpu);
  Event event = nullptr;
  NCCLRUN_TRY(statusOf(driver().eventCreate(&event, kEventNoTiming), "cuEventCreate"));
  Status status = statusOf(driver().eventRecord(event, reinterpret_cast<Stream>(earlier)), "cuEventRecord");
  if (status.ok())
    status = statusOf(driver().streamWaitEvent(reinterpret_cast<Stream>(later), event, 0), "cuStreamWaitEvent");
  driver().eventDestroy(event);
  return status;
}

void CudaDataPath::abort(const Status& status, FailureScope scope) {
  interrupt().raise(status, Interrupt::kNobody, scope);
  if (resources_->pinned != nullptr) std::atomic_ref(resources_->pinned->aborted).store(2, std::memory_order_release);
}

bool CudaDataPath::idle() const {
  std::lock_guard lock(mutex_);
  if (resources_->order == nullptr) return true;
  const OnGpu here(resources_->gpu);
  return resources_->order->query() != kNotReady;
}

// Predicts nothing where GPUs communicate through host memory, which the plan did not assume.
Status CudaDataPath::predict(const Operation& operation, double& microseconds) const {
  Task task{.operation = operation};
  Status status = chooseVariant(plan(), provenRequirements(false) | negotiableRequirements(), task);
  microseconds = status.ok() && resources_->regions->why().empty() ? predictedMicroseconds(task) : 0;
  return status;
}

// The variant of a captured operation.
Status CudaDataPath::variant(plan::Collective collective, uint64_t bytes, ncclrunVariant& out) const {
  return variantAt(plan(), provenRequirements(true) | negotiableRequirements(), collective, bytes, out);
}

Status CudaDataPath::nodeBarrier() {
  Status status = hostBarrier(
      {.plan = plan(), .segment = resources_->segment, .rank = setup_.rank, .gonePeers = resources_->gonePeers},
      interrupt(), ownBell(), plan().header().spinNanoseconds, telemetry_);
  if (!status.ok() && setup_.failed) setup_.failed(status, interrupt().scope());
  return status;
}

void CudaDataPath::info(ncclrunCommInfo& out) const {
  const auto& header = plan().header();
  out = {setup_.rank,       header.ranks,     plan().peer(setup_.rank).localIndex,
         header.localRanks, header.hostIndex, header.hosts};
}

const char* CudaDataPath::hostName(uint32_t index) const {
  return index < hostNames_.size() ? hostNames_[index].c_str() : nullptr;
}

// Lists used pairs by channel, including their traffic in the rings.
size_t CudaDataPath::edges(std::span<ncclrunEdge> out) const {
  const auto& header = plan().header();
  const TableLayout layout(resources_->regions->slots(), header.ranks);
  std::vector<SendState> sends(layout.states);
  std::vector<ReceiveState> receives(layout.states);
  const OnGpu here(resources_->gpu);
  const auto fetch = [&](void* to, size_t at, size_t bytes) {
    driver().memcpyAsync(reinterpret_cast<Pointer>(to), resources_->tables.pointer() + at, bytes, resources_->stream);
  };
  fetch(sends.data(), layout.sends, sends.size() * sizeof(SendState));
  fetch(receives.data(), layout.receives, receives.size() * sizeof(ReceiveState));
  driver().streamSynchronize(resources_->stream);
  size_t count = 0;
  for (uint32_t channel = 0; channel < header.channels; channel++) {
    const uint32_t ring = header.channels * header.ranks + channel;
    const uint32_t index = plan().ringIndex(channel, setup_.rank);
    for (uint32_t peer = 0; peer < header.ranks; peer++) {
      for (const bool isSend : {true, false}) {
        const auto bytesOf = [&](uint32_t state) { return isSend ? sends[state].bytes : receives[state].bytes; };
        const uint32_t neighbour = plan().ring(channel, (index + (isSend ? 1 : header.ranks - 1)) % header.ranks);
        uint64_t bytes = bytesOf(channel * header.ranks + peer);
        if (ring < layout.states && peer == neighbour) bytes += bytesOf(ring);
        if (channel == 0 && resources_->copies != nullptr) {
          const auto& copied = resources_->copies->engines().bytes(peer);
          bytes += isSend ? copied.sent : copied.received;
        }
        if (bytes == 0) continue;
        const auto transport =
            uint32_t(plan().sameHost(peer) ? resources_->regions->transport(peer) : plan::Transport::socket);
        if (count < out.size()) out[count] = {channel, peer, isSend ? 1u : 0u, transport, bytes};
        count++;
      }
    }
  }
  return count;
}

uint64_t CudaDataPath::gpuBytes() const {
  return memoryUse(plan().slots(), plan().header().ranks, plan().header().localRanks).total();
}

}  // namespace ncclrun::cuda
