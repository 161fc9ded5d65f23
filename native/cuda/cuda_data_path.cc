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
#include "cuda/cuda_ring_places.h"
#include "datapath/node_barrier.h"

namespace ncclrun::cuda {
namespace {

// NCCLRUN_COPY_TIMEOUT_US, microseconds, in nanoseconds; less than 0: nothing is said.
double saidPatience() {
  const char* const said = std::getenv("NCCLRUN_COPY_TIMEOUT_US");
  char* end = nullptr;
  const double microseconds = said == nullptr ? -1 : std::strtod(said, &end);
  return said == nullptr || end == said || *end != '\0' ? -1 : microseconds * 1000;
}

// Held while memory is freed, and for good from when the process ends: the driver is about to end too. It frees only
// when the whole GPU is idle, for which a process that ends does not wait for long.
constexpr auto kMostAtExit = std::chrono::seconds(1);
std::timed_mutex& freeing() {
  static auto& mutex = *new std::timed_mutex;
  static const int registered = std::atexit([] { (void)freeing().try_lock_for(kMostAtExit); });
  (void)registered;
  return mutex;
}

}  // namespace

Resources::~Resources() {
  const OnGpu here(gpu);
  if (probed != nullptr) driver().eventDestroy(probed);
  if (stream != nullptr) driver().streamDestroy(stream);
  if (words != nullptr) driver().memFreeHost(words);
}

// Until no kernel uses what is here. Peers' kernels that are under way still store into our memory; one that died, or
// keeps its communicator, is not waited for much longer than an abort takes.
void Resources::rest() const {
  const OnGpu here(gpu);
  if (order != nullptr) order->await();
  if (stream != nullptr) driver().streamSynchronize(stream);
  if (regions == nullptr) return;
  regions->publishRest();
  constexpr auto kMost = std::chrono::seconds(5);
  const auto until = std::chrono::steady_clock::now() + kMost;
  while (!regions->allRest() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

namespace {

// What the driver calls when a graph is gone must not call the driver.
thread_local bool onDriversThread = false;

// Kernels may wait for peers or in a stream behind others', and the driver frees memory only when the whole GPU is
// idle: that must not keep the caller, who may have more communicators to end.
void freeSoon(Resources* resources) {
  std::timed_mutex& mutex = freeing();
  const auto free = [resources, &mutex] {
    resources->rest();
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
      copyPatience_(saidPatience()) {}

CudaDataPath::~CudaDataPath() {
  if (!idle())
    abort({ncclInvalidUsage, "the communicator was destroyed while operations were under way"}, FailureScope::alone);
  if (resources_->copies != nullptr) resources_->copies->engines().tellNobody();
}

Status CudaDataPath::start() {
  Descriptor listening(setup_.listenFd);
  Resources& mine = *resources_;
  if (Status status = mine.plan.openFor(plan::Device::cuda, setup_.rank, setup_.plan); !status.ok()) return status;
  const auto& header = plan().header();
  if (header.hosts > 1) {
    return {ncclInvalidUsage, "GPUs of several hosts: this version of the engine connects those of one host only"};
  }
  if (header.ranks > kMaxPeers) {
    return {ncclInvalidUsage, formatSentence("%u GPUs on one host; the engine takes %u", header.ranks, kMaxPeers)};
  }
  if (Status status = mine.segment.map(setup_.segmentFd, plan()); !status.ok()) return status;
  for (uint32_t host = 0; host < header.hosts; host++) hostNames_.emplace_back(plan().hostName(host));
  mine.interrupt = std::make_unique<Interrupt>(mine.segment.abortBlock(), ownBell(), setup_.telemetry.get());
  startLoading();
  const OnGpu here(mine.gpu);
  const Driver& cuda = driver();
  if (Status status = statusOf(cuda.streamCreate(&mine.stream, kStreamNonBlocking), "cuStreamCreate"); !status.ok())
    return status;
  if (Status status = statusOf(cuda.eventCreate(&mine.probed, kEventNoTiming), "cuEventCreate"); !status.ok())
    return status;
  mine.order = std::make_unique<LaunchOrder>(mine.gpu);
  if (Status status = mine.order->make(mine.stream); !status.ok()) return status;
  mine.share =
      std::make_unique<MultiprocessorShare>(mine.gpu, [&order = *mine.order] { return order.query() != kNotReady; });
  void* words = nullptr;
  if (Status status =
          statusOf(cuda.memHostAlloc(&words, sizeof(HostWords), kHostPortable | kHostMapped), "cuMemHostAlloc");
      !status.ok())
    return status;
  mine.words = new (words) HostWords{};
  if (Status status = mine.sharedPages.pin(mine.gpu, &mine.segment.abortBlock(), mine.segment.sharedWithGpus());
      !status.ok())
    return status;
  mine.regions = std::make_unique<Regions>(mine.gpu, plan(), mine.segment, setup_.rank);
  if (Status status = mine.regions->allocate(mine.stream); !status.ok()) return status;
  if (Status status = makeTables(); !status.ok()) return status;
  if (Status status = statusOf(cuda.streamSynchronize(mine.stream), "cuStreamSynchronize"); !status.ok()) return status;
  return mine.regions->publish();
}

// While the ranks find each other.
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

// What the kernels need beside the regions, in one piece of memory: states of the connections, zero at first, places in
// the rings and the rings themselves.
Status CudaDataPath::makeTables() {
  Resources& mine = *resources_;
  const auto& header = plan().header();
  std::vector<uint32_t> rings;
  for (uint32_t channel = 0; channel < header.channels; channel++) {
    for (uint32_t place = 0; place < header.ranks; place++) rings.push_back(plan().ring(channel, place));
  }
  const TableLayout layout(plan().slots(), header.ranks);
  if (Status status = mine.tables.allocate(mine.gpu, layout.bytes, mine.stream); !status.ok()) return status;
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

// As soon as it is known by what memory peers are reached.
Status CudaDataPath::makePlaces() {
  const Regions& regions = *resources_->regions;
  const uint32_t ranks = plan().header().ranks;
  const auto both = [](Pointer in, Pointer out) {
    return RegionPair{reinterpret_cast<char*>(in), reinterpret_cast<char*>(out)};
  };
  std::vector<PeerRegions> byPeer;
  for (uint32_t peer = 0; peer < ranks; peer++) {
    byPeer.push_back({both(regions.in(peer), regions.out(peer)), both(regions.ringIn(peer), regions.ringOut(peer))});
  }
  const auto places = ringPlaces(plan(), regions.slots(), setup_.rank, byPeer);
  return fillTable(TableLayout(regions.slots(), ranks).places, places.data(), places.size() * sizeof(RingPlace));
}

Status CudaDataPath::connect() {
  Resources& mine = *resources_;
  const OnGpu here(mine.gpu);
  if (loading_.valid()) {
    if (loading_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {ncclInProgress, {}};
    if (Status status = loading_.get(); !status.ok()) return status;
  }
  if (launcher_ == nullptr) {
    if (Status status = mine.regions->connect(); !status.ok()) return status;
    if (Status status = makeLauncher(); !status.ok()) return status;
    if (Status status = beginProbe(); !status.ok()) return status;
  }
  return endProbe();
}

Status CudaDataPath::makeLauncher() {
  Resources& mine = *resources_;
  const auto& header = plan().header();
  Launch& launch = constants_;
  const auto at = []<class T>(Pointer pointer, T*& out) { out = reinterpret_cast<T*>(pointer); };
  for (uint32_t peer = 0; peer < header.ranks; peer++) {
    at(mine.regions->out(peer), launch.out[peer]);
    at(mine.regions->in(peer), launch.in[peer]);
  }
  if (Status status = makePlaces(); !status.ok()) return status;
  const TableLayout layout(mine.regions->slots(), header.ranks);
  at(mine.tables.pointer() + layout.sends, launch.sends);
  at(mine.tables.pointer() + layout.receives, launch.receives);
  at(mine.tables.pointer() + layout.places, launch.places);
  at(mine.tables.pointer() + layout.rings, launch.rings);
  at(mine.sharedPages.pointerTo(&mine.segment.abortBlock().word), launch.aborted);
  launch.aborted2 = &mine.words->aborted;
  launch.slots = mine.regions->slots();
  launch.divisor = 1;
  launch.rank = uint16_t(setup_.rank);
  launch.ranks = uint16_t(header.ranks);
  launcher_ = std::make_unique<Launcher>(mine.gpu, plan(), setup_.rank, launch, *mine.share);
  // In a queue that ranks share, what one waits for may stand behind its wait.
  if (header.ranks > 1 && mine.regions->allReach() && mine.regions->queuesApart())
    mine.copies =
        std::make_unique<DirectCopies>(mine.gpu, plan(), mine.segment, interrupt(), setup_.rank, mine.sharedPages);
  runner_ = std::make_unique<Runner>(plan(), setup_.rank, *launcher_, mine.copies.get());
  tellInfo(sentenceOf(memoryUse(launch.slots, header.ranks), mine.gpu.device), Subsystem::alloc);
  return {};
}

// From the first kernel, which has just ended, on.
Status CudaDataPath::reportWaits() {
  if (setup_.telemetry == nullptr) return {};
  Pointer state = 0, since = 0;
  Status status = pinnedForever(resources_->gpu, &setup_.telemetry->state, state);
  if (status.ok()) status = pinnedForever(resources_->gpu, &setup_.telemetry->lastProgressNs, since);
  if (!status.ok()) return status;
  const uint64_t clock = std::atomic_ref(resources_->words->clock).load(std::memory_order_acquire);
  launcher_->reportTo({reinterpret_cast<uint32_t*>(state), reinterpret_cast<uint64_t*>(since), nowNanoseconds() - clock,
                       ncclrunStateIdle, ncclrunStateWaiting});
  return {};
}

Status CudaDataPath::beginProbe() {
  Resources& mine = *resources_;
  const uint32_t ranks = plan().header().ranks;
  if (!mine.regions->allReach()) probe_ = Probe::useless;
  if (ranks == 1) probe_ = Probe::agreed;
  if (probe_ == Probe::useless) mine.regions->publishSplitLines(~0u);
  if (probe_ != Probe::none) return {};
  Function function = nullptr;
  if (Status status = load(mine.gpu, kBytesModule, kProbe, function); !status.ok()) return status;
  uint32_t* wrong = &mine.words->splitWords;
  uint64_t* clock = &mine.words->clock;
  void* parameters[] = {&constants_, &wrong, &clock};
  Status status = statusOf(driver().launchKernel(function, ranks, 1, 1, 512, 1, 1, 0, mine.stream, parameters, nullptr),
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
    mine.regions->publishSplitLines(std::atomic_ref(mine.words->splitWords).load(std::memory_order_acquire));
    if (Status status = reportWaits(); !status.ok()) return status;
    probe_ = Probe::told;
  }
  if (probe_ == Probe::agreed) return {};
  Status status = mine.regions->agreeOnLines(wholeLines_);
  if (status.ok()) probe_ = Probe::agreed;
  return status;
}

// A graph may be launched when its communicator has been destroyed.
Status CudaDataPath::holdFor(Stream stream, uint64_t capture) {
  constexpr size_t kRemembered = 64;
  if (capture == 0 || holding_.contains(capture)) return {};
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
  holding_.insert(capture);
  if (holding_.size() > kRemembered) holding_.erase(holding_.begin());
  return {};
}

// Of what uses, or may use again, what copies have reached before.
bool CudaDataPath::nothingUnderWay() const {
  return !resources_->order->everCaptured() && resources_->order->query() == kSuccess;
}

// Nothing where that would hold up a call, or where the process ends.
void CudaDataPath::tidyBuffers() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  std::unique_lock alive(freeing(), std::try_to_lock);
  if (!alive.owns_lock()) return;
  const OnGpu here(resources_->gpu);
  resources_->copies->tidy([this] { return nothingUnderWay(); });
}

void CudaDataPath::forgetBuffer(const RegisteredBuffer& buffer) {
  std::lock_guard lock(mutex_);
  if (resources_->copies == nullptr) return;
  const OnGpu here(resources_->gpu);
  resources_->copies->takeBack(buffer.address);
}

Status CudaDataPath::order(ncclrunStream_t later, ncclrunStream_t earlier) {
  const OnGpu here(resources_->gpu);
  Event event = nullptr;
  if (Status status = statusOf(driver().eventCreate(&event, kEventNoTiming), "cuEventCreate"); !status.ok())
    return status;
  Status status = statusOf(driver().eventRecord(event, reinterpret_cast<Stream>(earlier)), "cuEventRecord");
  if (status.ok())
    status = statusOf(driver().streamWaitEvent(reinterpret_cast<Stream>(later), event, 0), "cuStreamWaitEvent");
  driver().eventDestroy(event);
  return status;
}

void CudaDataPath::abort(const Status& status, FailureScope scope) {
  interrupt().raise(status, Interrupt::kNobody, scope);
  if (resources_->words != nullptr) std::atomic_ref(resources_->words->aborted).store(2, std::memory_order_release);
}

bool CudaDataPath::idle() const {
  std::lock_guard lock(mutex_);
  if (resources_->order == nullptr) return true;
  const OnGpu here(resources_->gpu);
  return resources_->order->query() != kNotReady;
}

// Nothing where memory of the host stands between GPUs, against what the plan took for granted.
Status CudaDataPath::predict(const Operation& operation, double& microseconds) const {
  Task task{.operation = operation};
  Status status = chooseForm(plan(), provable(false) | addresses(), task);
  microseconds = status.ok() && resources_->regions->why().empty() ? predictedMicroseconds(task) : 0;
  return status;
}

// As a captured operation has it.
Status CudaDataPath::form(plan::Collective collective, uint64_t bytes, ncclrunForm& out) const {
  return formAt(plan(), provable(true) | addresses(), collective, bytes, out);
}

ncclResult_t CudaDataPath::nodeBarrier() {
  const Status status =
      meetOnHost({.plan = plan(), .segment = resources_->segment, .rank = setup_.rank, .gonePeers = gonePeers_},
                 interrupt(), ownBell(), plan().header().spinNanoseconds, telemetry_);
  if (!status.ok() && setup_.failed) setup_.failed(status, interrupt().scope());
  return result(status);
}

void CudaDataPath::info(ncclrunCommInfo& out) const {
  const auto& header = plan().header();
  out = {setup_.rank,       header.ranks,     plan().peer(setup_.rank).localIndex,
         header.localRanks, header.hostIndex, header.hosts};
}

const char* CudaDataPath::hostName(uint32_t index) const {
  return index < hostNames_.size() ? hostNames_[index].c_str() : nullptr;
}

// Pairs that have been used, by channel; what went round the rings between them counts, too.
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
    const uint32_t place = plan().placeInRing(channel, setup_.rank);
    for (uint32_t peer = 0; peer < header.ranks; peer++) {
      for (const bool isSend : {true, false}) {
        const auto bytesOf = [&](uint32_t state) { return isSend ? sends[state].bytes : receives[state].bytes; };
        const uint32_t neighbour = plan().ring(channel, (place + (isSend ? 1 : header.ranks - 1)) % header.ranks);
        uint64_t bytes = bytesOf(channel * header.ranks + peer);
        if (ring < layout.states && peer == neighbour) bytes += bytesOf(ring);
        if (channel == 0 && resources_->copies != nullptr) {
          const auto& copied = resources_->copies->engines().bytes(peer);
          bytes += isSend ? copied.sent : copied.received;
        }
        if (bytes == 0) continue;
        const auto transport = uint32_t(resources_->regions->transport(peer));
        if (count < out.size()) out[count] = {channel, peer, isSend ? 1u : 0u, transport, bytes};
        count++;
      }
    }
  }
  return count;
}

uint64_t CudaDataPath::gpuBytes() const { return memoryUse(plan().slots(), plan().header().ranks).total(); }

}  // namespace ncclrun::cuda
