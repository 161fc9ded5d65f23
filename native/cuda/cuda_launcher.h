// Turns operations into kernel launches, as host/operation_runner does on the host device.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cuda/kernels.h"
#include "cuda/sm_share.h"
#include "datapath/launch.h"
#include "datapath/recorder.h"
#include "dl/gpu.h"
#include "plan/collnet_shape.h"
#include "plan/launch_format.h"
#include "plan/plan_view.h"

namespace ncclrun::cuda {

class Launcher {
 public:
  // `constants`: a launch without items. `railPeers`: of this rank, by number of the connection.
  Launcher(const Gpu& gpu, const PlanView& plan, uint32_t rank, const Launch& constants,
           std::vector<uint32_t> railPeers, SmShare& share)
      : gpu_(gpu),
        plan_(plan),
        rank_(rank),
        launch_(constants),
        railPeers_(std::move(railPeers)),
        chains_(collnetChains(plan, rank)),
        share_(share) {}

  // Ranks that this one is connected with by rails; empty where the plan has none.
  std::span<const uint32_t> railPeers() const { return railPeers_; }

  // Called before the next run. `ended`: counter that blocks increment as they end; null in a capture. counted():
  // number of blocks counted so far, modulo 2^32; nullopt if the last run() has queued anything else.
  void prepare(uint32_t* ended, bool captured) {
    launch_.ended = ended;
    captured_ = captured;
    launch_.recorder = captured ? capturedRecords_ : eager_;
    recorded_ = 0;
  }
  std::optional<uint32_t> counted() const { return copied_ ? std::nullopt : std::optional(counted_); }

  // Of all runs so far: blocks that count themselves as they end, modulo 2^32.
  uint32_t blocks() const { return counted_; }

  void reportTo(const WaitReport& report) { launch_.report = report; }
  // Kernels record their operations there: `eager` those that run once, `captured` those of graphs.
  void recordTo(const Recorder& recorder, const RecorderAccess& eager, const RecorderAccess& captured) {
    recorder_ = &recorder;
    eager_ = eager;
    capturedRecords_ = captured;
  }

  // Sends and receives together first, then the collectives in order; all of it is queued on the stream, in the GPU's
  // context, which is current.
  Status run(std::span<const Task> tasks, Stream stream);
  // Runs a reduce_scatter that reads the operands where they lie. `sources`: for each other rank, the address of its
  // elements for this rank.
  Status pull(const Task& task, std::span<const Pointer> sources, Stream stream);

 private:
  // Properties that all items of one launch share.
  struct Shape {
    Kernel kernel;
    plan::Protocol protocol;
    Routine routine;  // send and receive are one
    uint32_t threads;
    uint8_t elementBytes;
    const void* scalarAt;
    uint64_t scalar;
    uint32_t divisor;
    uint8_t reduction;  // as Launch has it
    bool operator==(const Shape& other) const = default;
  };
  Shape shapeOf(const Task& task) const;
  Item itemOf(const Task& task, const Shape& shape);
  void addItem(Item item, const Shape& shape);
  ItemRecord recordOf(const Task& task);
  void numberRecords();
  // A part for each channel, whose chains differ.
  void addChains(const Item& item, const Shape& shape);
  // `peer`: of a message.
  void connect(Item& item, uint32_t peer) const;
  bool isCopy(const Task& task) const;
  Status copy(const Task& task, Stream stream);
  bool expand(const Task& task, std::vector<Task>& transfers) const;
  Status sendAndReceive(std::span<const Task* const> tasks, uint32_t messages, Stream stream);
  Status exchangeInPlace(const Task& task, uint32_t messages, Stream stream);
  uint32_t blocksOfMessage(uint32_t messages) const;
  Status checkCopies(std::span<const Task* const> sends, std::span<const Task* const> receives) const;
  bool isSingleStep(const Shape& shape, uint32_t blocks) const;
  Status flush(const Shape& shape, uint32_t blocks, bool separateQueues, Stream stream);
  Status launch(const Shape& shape, bool singleStep, uint32_t grid, Stream stream);

  const Gpu gpu_;
  const PlanView& plan_;
  const uint32_t rank_;
  Launch launch_;
  const std::vector<uint32_t> railPeers_;
  const std::vector<ChainPosition> chains_;  // by channel
  SmShare& share_;
  const Recorder* recorder_ = nullptr;  // null: kernels record nothing
  RecorderAccess eager_{}, capturedRecords_{};
  uint64_t recorded_ = 0;  // record of the last item that has one
  bool captured_ = false;
  uint32_t counted_ = 0;
  bool copied_ = false;  // the driver copied, without a kernel
  Shape lastShape_{};    // of the last launch, as are its kernel
  bool lastIsSingleStep_ = false;
  Function lastFunction_ = nullptr;
};

}  // namespace ncclrun::cuda
