// The set-up of a data path on GPUs: memory, kernels, tables and the probe of the first kernel.
#include <chrono>
#include <cstring>
#include <new>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/debug.h"
#include "base/descriptor.h"
#include "base/thread.h"
#include "base/variables.h"
#include "cuda/cuda_data_path.h"
#include "cuda/cuda_memory_use.h"
#include "cuda/ring_positions.h"
#include "plan/rail_shape.h"
#include "plan/variants.h"

namespace ncclrun::cuda {
namespace {

constexpr int kClockReadings = 5;
constexpr uint64_t kMaxClockReadingNs = 50'000;
constexpr uint64_t kMaxFirstReadingNs = 100'000'000;  // better than none

}  // namespace

Status CudaDataPath::start() {
  Descriptor listening(setup_.listenFd);
  Resources& mine = *resources_;
  mine.planBytes.assign(setup_.plan.begin(), setup_.plan.end());
  NCCLRUN_TRY(mine.plan.openFor(plan::Device::cuda, setup_.rank, mine.planBytes));
  mine.recorder = setup_.recorder;
  recorder_.emplace(setup_.recorder, mine.plan.header().ranks);
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
    const bool isGroup = peer == setup_.rank && mine.netRegions != nullptr;  // of a network that reduces
    if (!plan().sameHost(peer) || isGroup) continue;
    const RegionPair regions = pairRegions(peer);
    if (mine.netRegions != nullptr) {
      mine.netRegions->enter(peer, regions);
    } else {
      launch.out[peer] = regions.out;
      launch.in[peer] = regions.in;
    }
  }
  if (mine.netRegions != nullptr) launch.pairs = mine.netRegions->pairs();
  launch.usesGpuDirect = mine.netRegions != nullptr && mine.netRegions->directs() ? 1 : 0;
  NCCLRUN_TRY(makeRingPositions());
  const TableLayout layout(mine.regions->slots(), header.ranks);
  at(mine.tables.pointer() + layout.sends, launch.sends);
  at(mine.tables.pointer() + layout.receives, launch.receives);
  at(mine.tables.pointer() + layout.ringPositions, launch.ringPositions);
  at(mine.tables.pointer() + layout.rings, launch.rings);
  std::vector<uint32_t> railPeers;
  if (header.hosts > 1 && plan().ranksOfEachHost() > 0) {
    RailPosition position = railPosition(plan(), setup_.rank);
    launch.hosts = uint16_t(position.hosts);
    launch.host = uint16_t(position.host);
    launch.locals = uint16_t(position.locals);
    launch.local = uint16_t(position.local);
    if (hasRails(plan::Device::cuda, header.hosts, position.locals)) {
      at(mine.tables.pointer() + layout.byHost, launch.byHost);
      railPeers = std::move(position.peers);
    }
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

// Where the recorder cannot be had by the GPU, it has the calls alone.
void CudaDataPath::startRecording() {
  if (!recorder_->isOn() || environmentVariable("NCCLRUN_RECORDER") == "calls") return;
  Resources& mine = *resources_;
  gpuRecorder_ = GpuRecorder::of(mine.gpu, recorder_->memory(), mine.stream);
  if (gpuRecorder_ == nullptr) return;
  const TableLayout layout(mine.regions->slots(), plan().header().ranks);
  auto* const counts = reinterpret_cast<uint32_t*>(mine.tables.pointer() + layout.recorded);
  const uint16_t communicator = recorder_->communicator();
  gpuRecorder_->adopt(communicator);
  launcher_->recordTo(*recorder_, gpuRecorder_->access(false, nullptr, communicator),
                      gpuRecorder_->access(true, counts, communicator));
  readGpuClock(kClockReadings);
}

// Reads the GPU's clock at a moment that lies between two readings of the host's: the closer these are, the better. A
// GPU that has other work may take too long; then the readings before have to do.
void CudaDataPath::readGpuClock(int tries) {
  Resources& mine = *resources_;
  const Driver& cuda = driver();
  Function function = nullptr;
  if (!load(mine.gpu, kBytesModule, kProbe, function).ok()) return;
  auto clock = std::atomic_ref(mine.pinned->clock);
  uint64_t beforeNs = 0, gpuNs = 0, afterNs = UINT64_MAX;
  for (int i = 0; i < tries && clock.load(std::memory_order_acquire) != 0; i++) {
    clock.store(0, std::memory_order_release);
    uint32_t* none = nullptr;
    uint64_t* to = &mine.pinned->clock;
    void* parameters[] = {&constants_, &none, &to};
    const uint64_t before = nowNanoseconds();
    if (cuda.launchKernel(function, 1, 1, 1, 32, 1, 1, 0, mine.stream, parameters, nullptr) != kSuccess) break;
    uint64_t seen = 0, after = before;
    const bool isFirst = gpuNs == 0 && gpuRecorder_->lastReadNs() == 0;
    while (seen == 0 && after < before + (isFirst ? kMaxFirstReadingNs : kMaxClockReadingNs)) {
      pauseBriefly();
      seen = clock.load(std::memory_order_acquire);
      after = nowNanoseconds();
    }
    if (seen != 0 && after - before < afterNs - beforeNs)
      std::tie(beforeNs, gpuNs, afterNs) = std::tie(before, seen, after);
  }
  if (gpuNs != 0) gpuRecorder_->readClock(beforeNs, gpuNs, afterNs);
}

Status CudaDataPath::beginProbe() {
  Resources& mine = *resources_;
  const uint32_t ranks = plan().header().ranks;
  if (ranks == 1) {
    probe_ = Probe::agreed;
    mine.pinned->clock = 1;  // no reading is under way
    startRecording();
  }
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
    startRecording();
    probe_ = Probe::published;
  }
  if (probe_ == Probe::agreed) return {};
  Status status = mine.regions->agreeOnLL128(hasLL128_);
  if (status.ok()) probe_ = Probe::agreed;
  return status;
}

}  // namespace ncclrun::cuda
