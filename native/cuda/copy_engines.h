// Runs copy programs: a GPU's copy engines store into other GPUs' buffers, one stream per peer, without kernels. Events
// order the streams within a rank; between ranks, streams write and wait for flags in the host segment (CopyFlags).
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cuda/copy_program.h"
#include "datapath/interrupt.h"
#include "dl/gpu_memory.h"
#include "plan/launch_format.h"
#include "plan/plan_view.h"

namespace ncclrun::cuda {

class CopyEngines {
 public:
  struct Bytes {
    uint64_t sent = 0, received = 0;
  };
  // `flags`: the pinned pages that hold the copy flags.
  CopyEngines(const Gpu& gpu, const PlanView& plan, const Segment& segment, uint32_t rank, const PinnedPages& flags);
  ~CopyEngines();
  CopyEngines(const CopyEngines&) = delete;
  CopyEngines& operator=(const CopyEngines&) = delete;

  // Queues the program behind the stream's earlier work. Work queued on the stream until end() runs beside an
  // `independent` program; the caller must queue none for other programs. `capture`: of the stream; 0: none.
  Status begin(const CopyProgram& program, Stream stream, uint64_t capture);
  // Work queued on the stream from now on waits for the whole program.
  Status end(const CopyProgram& program);
  // Work queued on the stream from now on may read the buffers of all other ranks, as they are when those reach this
  // point. Behind endReads() no rank reads this rank's buffer any more. `bytes`: that each rank reads of each.
  Status beginReads(Stream stream, uint64_t bytes);
  Status endReads(Stream stream) const;

  // Starts a thread that ends all waits of this rank, queued ones too, when the communicator is interrupted. Called
  // once; the thread runs as long as the object lives. Until stopReporting(), it also reports slow programs to the
  // telemetry page and calls `nowAndThen`.
  struct Watch {
    const Interrupt& interrupt;
    Doorbell& bell;
    ncclrunTelemetrySlot* telemetry;
    std::function<void()> nowAndThen;
  };
  void endWaitsOn(const Watch& watch);
  void stopReporting();

  // Bytes as the host counted them: captured operations count once.
  const Bytes& bytes(uint32_t peer) const { return bytes_[peer]; }

 private:
  struct PeerStream {  // to one peer, or within this GPU's memory
    Stream stream = nullptr;
    Event joined = nullptr;
    bool used = false;  // in the current program
  };
  // A stream that is part of a capture can be part of nothing else until that ends, so each capture has its own
  // streams.
  struct Streams {
    uint64_t capture = 0;
    Event forked = nullptr;
    std::array<PeerStream, kMaxPeers> all{};
  };
  CopyFlags& flags(uint32_t from, uint32_t to) const { return segment_.copyFlags(locals_[from], locals_[to]); }
  template <class Each>
  void forEachPeer(Each&& each) const {
    for (uint32_t peer = 0; peer < ranks_; peer++) {
      if (peer != rank_) each(peer);
    }
  }
  Status takeStreams(uint64_t capture);
  static bool isCaptured(const Streams& streams);
  static Status makeStream(PeerStream& peerStream);
  MemoryOperation operation(int what, uint32_t& flag, uint32_t value) const;
  void await(std::vector<MemoryOperation>& batch, uint32_t& flag) const;
  Status run(const std::vector<MemoryOperation>& batch, Stream stream) const;
  Status runNext();
  uint32_t onlyPeer(const CopyProgram& program) const;
  bool isForked() const;  // another stream runs beside the caller's
  bool isOnStream(const Copy& copy) const { return copy.peer == onStream_ && copy.peer != rank_; }
  Status begin(const CopyProgram& program, const CopyStage& stage);
  Status begin(const Copy& copy, bool independent);
  void endWaits() const;
  uint32_t& busy() const { return flags(rank_, rank_).ready; }  // 1: a program is running on this GPU
  bool report(bool wasBusy);

  const Gpu gpu_;
  const Segment& segment_;
  const uint32_t rank_, ranks_;
  const PinnedPages& pinned_;
  std::array<uint32_t, kMaxPeers> locals_{};  // local index of each rank; the plan may be gone when waits have to end
  std::vector<std::unique_ptr<Streams>> streams_;  // the first ones are for programs that are not captured
  // The current program: its streams, the caller's stream, the peer whose copies run on that (the rank itself: none),
  // and the pending operations on flags there.
  Streams* current_ = nullptr;
  Stream stream_ = nullptr;
  uint32_t onStream_ = 0;
  std::vector<MemoryOperation> next_;
  std::array<Bytes, kMaxPeers> bytes_{};
  std::thread watch_;
  std::atomic<bool> stopping_{false};
  Doorbell* bell_ = nullptr;
  std::mutex reportMutex_;
  ncclrunTelemetrySlot* telemetry_ = nullptr;  // guarded by reportMutex_
  std::function<void()> nowAndThen_;           // likewise
};

}  // namespace ncclrun::cuda
