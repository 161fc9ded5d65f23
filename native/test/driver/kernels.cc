// Kernels of the stand-in, by the names that cuda/kernels.cc asks for: those of cuda/kernels, compiled
// for this machine (simt). Where they were not, or NCCLRUN_STAND_IN_KERNELS=primitives, the algorithms of the same
// launches run over primitives of the stand-in: what a slot looks like is its own business then.
#include <dlfcn.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "algorithm/collnet.h"
#include "algorithm/direct.h"
#include "algorithm/rail.h"
#include "algorithm/ring.h"
#include "algorithm/send_receive.h"
#include "algorithm/tree.h"
#include "base/fiber.h"
#include "driver.h"
#include "plan/launch_format.h"
#include "primitives.h"
#include "simt/machine.h"

using namespace ncclrun;
using namespace ncclrun::cuda;
using ncclrun::cuda::Function;
using stand_in::Block;
using stand_in::Primitives;

// A module is its name: NCCLRUN_KERNELS names a directory whose files have it.
struct CUmod_st {
  std::string name;
  void* compiled;  // null: the stand-in's primitives
};
struct CUfunc_st {
  std::string module, name;
  void* compiled;
};

namespace {

Work workOf(const cuda::Launch& launch, const Item& item, uint32_t block, uint32_t channel, uint32_t protocol) {
  const uint32_t ringIndex = item.usesRing ? launch.ringPositions[channel].index : 0u;
  return {.send = item.send,
          .receive = item.receive,
          .count = item.count,
          .elementBytes = launch.elementBytes,
          .chunk = item.chunk,
          .grain = item.grain,
          .step = item.step,
          .isLL = protocol == 1,
          .block = block,
          .blocks = item.blocks,
          .rank = launch.rank,
          .ranks = launch.ranks,
          .ringIndex = ringIndex,
          .root = item.root,
          .children = item.children,
          .ring = launch.rings + channel * launch.ranks,
          .hosts = launch.hosts,
          .host = launch.host,
          .locals = launch.locals,
          .local = launch.local,
          .byHost = launch.byHost};
}

void runRoutine(Primitives& p, const Work& w, Routine routine) {
  switch (routine) {
    case Routine::allReduceOneShot:
      return directOneShotAllReduce(p, w);
    case Routine::allReduceTwoShot:
      return directTwoShotAllReduce(p, w);
    case Routine::allReduceRing:
      return ringAllReduce(p, w);
    case Routine::allReduceTree:
      return treeAllReduce(p, w);
    case Routine::allReduceRail:
      return railAllReduce(p, w);
    case Routine::allReduceCollnet:
      return collnetAllReduce(p, w);
    case Routine::allReduceCollnetChain:
      return collnetChainAllReduce(p, w);
    case Routine::reduceScatterDirect:
      return directReduceScatter(p, w);
    case Routine::reduceScatterRing:
      return ringReduceScatter(p, w);
    case Routine::reduceScatterRail:
      return railReduceScatter(p, w);
    case Routine::reduceDirect:
      return directReduce(p, w);
    case Routine::reduceRing:
      return ringReduce(p, w);
    case Routine::reduceTree:
      return treeReduce(p, w);
    case Routine::reducePulled:
      return p.pull(w);
    case Routine::allGatherDirect:
      return directAllGather(p, w);
    case Routine::allGatherRing:
      return ringAllGather(p, w);
    case Routine::allGatherRail:
      return railAllGather(p, w);
    case Routine::broadcastDirect:
      return directBroadcast(p, w);
    case Routine::broadcastRing:
      return ringBroadcast(p, w);
    case Routine::broadcastTree:
      return treeBroadcast(p, w);
    case Routine::allToAll:
      return directAllToAll(p, w);
    case Routine::gather:
      return directGather(p, w);
    case Routine::scatter:
      return directScatter(p, w);
    case Routine::send:
      return sendTo(p, w);
    case Routine::receive:
      return receiveFrom(p, w);
    case Routine::exchange:
      return exchangeInPlace(p, w);
    case Routine::barrier:
      return flatBarrier(p, w);
    default:
      return p.copyAll(w.send, w.receive, w.count, w.block, w.blocks);
  }
}

uint32_t protocolOf(std::string_view kernel, const Item& item) {
  if (kernel.starts_with("ncclrunMixed")) return item.protocol;
  if (kernel.starts_with("ncclrunBarrier")) return 1;
  return kernel.starts_with("ncclrunLL128") ? 2 : kernel.starts_with("ncclrunLL") ? 1 : 0;
}

// Of an item, that a block does.
struct Parts {
  uint32_t first, end, stride;
};
Parts partsOf(std::string_view kernel, const cuda::Launch& launch, const Item& item, uint32_t block, uint32_t grid) {
  if (kernel.find("SingleStep") != kernel.npos) {
    const uint32_t part = launch.itemCount > 1 ? block - item.firstBlock : block + item.firstBlock;
    return {part, part < item.blocks ? part + 1 : 0, 1};
  }
  const uint32_t worker = (block + grid - item.firstBlock) % grid;
  if (item.routine == Routine::barrier) return {0, worker == 0 ? 1u : 0u, 1};
  return {worker, worker < item.workers ? item.blocks : 0u, item.workers};
}

uint64_t now() { return uint64_t(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1)); }

// As cuda/kernels/recording.cuh: of the part that is its item's first.
class Recording {
 public:
  Recording(const cuda::Launch& launch, const Item& item, bool isFirst) {
    if (!isFirst || item.record.call == 0) return;
    const RecorderAccess& recorder = launch.recorder;
    const bool isReplay = recorder.taken != nullptr;
    sequence_ = isReplay ? std::atomic_ref(*recorder.taken).fetch_add(1) + 1 : item.record.call;
    entry_ = recorder.entries + (sequence_ - 1) % kRecorderEntries;
    if (isReplay) {
      const uint32_t number =
          std::atomic_ref(recorder.counts[recordedCount(item.record, launch.ranks)]).fetch_add(1) + 1;
      const uint64_t peer = item.record.countAndPeer >> 48;
      *entry_ = {sequence_,
                 stamp(),
                 stamp(),
                 0,
                 item.record.countAndPeer & kStampMask,
                 number | (peer == kNoRecordPeer ? 0xffffffff : peer) << 32,
                 recorder.generation | uint64_t(recorder.communicator) << 32,
                 item.record.call};
      entry_->enqueued = entry_->started;
    } else {
      store(entry_->started);
    }
  }
  void end() const {
    if (entry_ != nullptr) store(entry_->ended);
  }

 private:
  uint64_t stamp() const { return (now() & kStampMask) | stampTag(sequence_); }
  void store(uint64_t& field) const { std::atomic_ref(field).store(stamp(), std::memory_order_relaxed); }

  EntryWords* entry_ = nullptr;
  uint64_t sequence_ = 0;
};

// All blocks on one thread, as a GPU runs them side by side, as far as it has room for them.
void runLaunch(const std::string& module, const std::string& kernel, const cuda::Launch& launch, int device,
               uint32_t grid) {
  const Reduction reduction = stand_in::reductionOf(module, launch);
  std::vector<std::unique_ptr<Block>> blocks;
  for (uint32_t number = 0; number < grid; number++) {
    blocks.push_back(std::make_unique<Block>([&, number](Block& block) {
      for (uint32_t i = 0; i < launch.itemCount; i++) {
        const Item& item = launch.items[i];
        const Parts parts = partsOf(kernel, launch, item, number, grid);
        const Recording recording(launch, item, parts.first == 0 && parts.end > 0);
        for (uint32_t part = parts.first; part < parts.end; part += parts.stride) {
          const uint32_t channel = (item.firstChannel + part) % launch.slots.channels;
          const uint32_t protocol = protocolOf(kernel, item);
          Primitives primitives(block, launch, item, channel, protocol, reduction);
          runRoutine(primitives, workOf(launch, item, part, channel, protocol), item.routine);
          primitives.finish();
        }
        recording.end();
      }
    }));
  }
  stand_in::Residency residency(device, grid);
  stand_in::runAll(blocks, residency);
  if (launch.ended != nullptr) std::atomic_ref(*launch.ended).fetch_add(grid, std::memory_order_acq_rel);
}

// Lines of 128 bytes are copied whole here; the peer need not be asked.
void runProbe(void** parameters) {
  auto** const clock = static_cast<uint64_t**>(parameters[2]);
  std::atomic_ref(**clock).store(now(), std::memory_order_release);
}

bool wantsPrimitives() {
  const char* const said = std::getenv("NCCLRUN_STAND_IN_KERNELS");
  return said != nullptr && std::string_view(said) == "primitives";
}

// Beside the driver; null: there is none, or none is wanted.
void* compiledModule(const std::string& name) {
  Dl_info own;
  if (wantsPrimitives() || dladdr(reinterpret_cast<void*>(&compiledModule), &own) == 0) return nullptr;
  std::string path = own.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + "kernels/" + name + ".so";
  if (access(path.c_str(), F_OK) != 0) return nullptr;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "stand-in: %s\n", dlerror());
  if (library == nullptr) std::abort();
  return library;
}

using Kernel = void (*)(const cuda::Launch&);
using ProbeKernel = void (*)(const cuda::Launch&, uint32_t*, uint64_t*);

// Until the launch has run.
std::shared_ptr<cuda::Launch> copied(const void* launch, size_t bytes) {
  // No larger than what there is of it: who checks accesses to memory sees one behind it.
  std::shared_ptr<cuda::Launch> copy(static_cast<cuda::Launch*>(std::malloc(bytes)), [](void* p) { std::free(p); });
  std::memcpy(static_cast<void*>(copy.get()), launch, bytes);
  return copy;
}

}  // namespace

// What nvcc makes has no code for this machine's processors, as it may have none for a GPU; behind the same header a
// name does for code.
STAND_IN_EXPORT Result cuModuleLoadData(Module* module, const void* image) {
  constexpr uint32_t kFatbin = 0xba55ed50;
  constexpr size_t kHeaderBytes = 16;
  const char* name = static_cast<const char*>(image);
  uint32_t magic;
  std::memcpy(&magic, image, sizeof magic);
  if (magic == kFatbin) name += kHeaderBytes;
  if (std::isalpha(static_cast<unsigned char>(*name)) == 0) return kNoBinaryForGpu;
  *module = new CUmod_st{name, compiledModule(name)};
  return kSuccess;
}
STAND_IN_EXPORT Result cuModuleGetFunction(Function* function, Module module, const char* name) {
  void* const compiled = module->compiled == nullptr ? nullptr : dlsym(module->compiled, name);
  if (module->compiled != nullptr && compiled == nullptr) return stand_in::kNotFound;
  *function = new CUfunc_st{module->name, name, compiled};
  return kSuccess;
}
STAND_IN_EXPORT Result cuFuncSetAttribute(Function, int, int) { return kSuccess; }
STAND_IN_EXPORT Result cuFuncGetAttribute(int* value, int, Function) {
  *value = 32;
  return kSuccess;
}
STAND_IN_EXPORT Result cuLaunchKernel(Function function, unsigned grid, unsigned, unsigned, unsigned threads, unsigned,
                                      unsigned, unsigned, Stream stream, void** parameters, void** extra) {
  const int device = stand_in::currentDevice();
  if (function->name == "ncclrunProbe") {
    if (function->compiled == nullptr) {
      runProbe(parameters);
      return kSuccess;
    }
    const auto launch = copied(parameters[0], sizeof(cuda::Launch));
    return stand_in::enqueue(
        stream, [=, kernel = reinterpret_cast<ProbeKernel>(function->compiled),
                 wrong = *static_cast<uint32_t**>(parameters[1]), clock = *static_cast<uint64_t**>(parameters[2])] {
          simt::runGrid("ncclrunProbe", device, grid, threads, [&] { kernel(*launch, wrong, clock); });
        });
  }
  const auto launch = copied(extra[1], *static_cast<size_t*>(extra[3]));
  return stand_in::enqueue(
      stream, [=, module = function->module, name = function->name, compiled = function->compiled] {
        if (compiled == nullptr) return runLaunch(module, name, *launch, device, grid);
        const auto kernel = reinterpret_cast<Kernel>(compiled);
        simt::runGrid((module + " " + name).c_str(), device, grid, threads, [&] { kernel(*launch); });
      });
}
