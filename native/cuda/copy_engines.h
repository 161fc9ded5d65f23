// Carries out copy programs: a GPU's copy engines store into buffers of others, a stream for each peer, and no kernel
// runs. Within a rank, streams are ordered by events; between ranks, by words in the host segment (CopyWords), which
// streams write and wait for themselves.
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
  // `words`: the pinned pages that have the copy words in them.
  CopyEngines(const Gpu& gpu, const PlanView& plan, const Segment& segment, uint32_t rank, const PinnedPages& words);
  ~CopyEngines();
  CopyEngines(const CopyEngines&) = delete;
  CopyEngines& operator=(const CopyEngines&) = delete;

  // Begins the program behind what the stream has. What comes on the stream until end() runs beside a program whose
  // copies are `apart`; beside others nothing may come. `capture`: of the stream; 0: none.
  Status begin(const CopyProgram& program, Stream stream, uint64_t capture);
  // What comes on the stream from now on waits for all of the program.
  Status end(const CopyProgram& program);
  // What comes on the stream from now on may read the buffers of all other ranks as they are where they have come to
  // this, and behind part() nobody reads ours any more. `bytes`: that each reads of each.
  Status meet(Stream stream, uint64_t bytes);
  Status part(Stream stream) const;

  // While they run, somebody has to see that the communicator is interrupted: all waits of this rank end then, those
  // that are queued too. Called once; until the object ends. Until tellNobody(), tells the telemetry page of programs
  // that take long, and calls `nowAndThen`.
  struct Watch {
    const Interrupt& interrupt;
    Doorbell& bell;
    ncclrunTelemetrySlot* telemetry;
    std::function<void()> nowAndThen;
  };
  void endWaitsOn(const Watch& watch);
  void tellNobody();

  // As the host counted: of captured operations once.
  const Bytes& bytes(uint32_t peer) const { return bytes_[peer]; }

 private:
  struct Line {  // to one peer, or within the own memory
    Stream stream = nullptr;
    Event joined = nullptr;
    bool used = false;  // in the program under way
  };
  // A stream that is part of a capture can be part of nothing else until that ends: each capture has lines of its own.
  struct Lines {
    uint64_t capture = 0;
    Event forked = nullptr;
    std::array<Line, kMaxPeers> all{};
  };
  CopyWords& words(uint32_t from, uint32_t to) const { return segment_.copyWords(locals_[from], locals_[to]); }
  template <class Each>
  void forEachPeer(Each&& each) const {
    for (uint32_t peer = 0; peer < ranks_; peer++) {
      if (peer != rank_) each(peer);
    }
  }
  Status takeLines(uint64_t capture);
  static bool isCaptured(const Lines& lines);
  static Status makeLine(Line& line);
  MemoryOperation operation(int what, uint32_t& word, uint32_t value) const;
  void await(std::vector<MemoryOperation>& batch, uint32_t& word) const;
  Status run(const std::vector<MemoryOperation>& batch, Stream stream) const;
  Status runNext();
  uint32_t onlyPeer(const CopyProgram& program) const;
  bool isForked() const;  // something runs beside what is on the caller's stream
  bool isOnStream(const Copy& copy) const { return copy.peer == onStream_ && copy.peer != rank_; }
  Status begin(const CopyProgram& program, const CopyStage& stage);
  Status begin(const Copy& copy, bool apart);
  void endWaits() const;
  uint32_t& busy() const { return words(rank_, rank_).ready; }  // 1: a program is under way on this GPU
  bool tell(bool wasBusy);

  const Gpu gpu_;
  const Segment& segment_;
  const uint32_t rank_, ranks_;
  const PinnedPages& pinned_;
  std::array<uint32_t, kMaxPeers> locals_{};   // of each rank; the plan's text may be gone when waits have to end
  std::vector<std::unique_ptr<Lines>> lines_;  // the first ones of what is not captured
  // Of the program under way: its lines, the caller's stream, who has the copies on that (the rank itself: nobody), and
  // what is to be done with words there before anything else.
  Lines* current_ = nullptr;
  Stream stream_ = nullptr;
  uint32_t onStream_ = 0;
  std::vector<MemoryOperation> next_;
  std::array<Bytes, kMaxPeers> bytes_{};
  std::thread watch_;
  std::atomic<bool> ends_{false};
  Doorbell* bell_ = nullptr;
  std::mutex telling_;
  ncclrunTelemetrySlot* telemetry_ = nullptr;  // guarded by telling_
  std::function<void()> nowAndThen_;           // likewise
};

}  // namespace ncclrun::cuda
