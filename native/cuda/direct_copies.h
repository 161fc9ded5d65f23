// Operations in which copy engines store into users' buffers directly, or kernels read them where they lie: agrees on
// them with the other ranks, finds their buffers, and runs them.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cuda/agreement.h"
#include "cuda/copy_engines.h"
#include "cuda/p2p/peer_buffers.h"
#include "cuda/queue_user.h"
#include "datapath/launch.h"

namespace ncclrun::cuda {

class DirectCopies {
 public:
  DirectCopies(const Gpu& gpu, const PlanView& plan, const Segment& segment, const Interrupt& interrupt, uint32_t rank,
               const PinnedPages& words)
      : plan_(plan),
        agreements_(segment.agreements()),
        interrupt_(interrupt),
        rank_(rank),
        ranks_(plan.header().ranks),
        queueUser_(gpu.device),
        buffers_(gpu, segment, plan.peer(rank).localIndex),
        engines_(gpu, plan, segment, rank, words) {}

  using Buffers = std::array<Pointer, kMaxPeers>;

 private:
  // Numbers of agreements so far: of collectives, and of messages by peer.
  struct Numbers {
    uint64_t collectives = 0;
    std::array<uint64_t, kMaxPeers> sends{}, receives{};
    bool operator==(const Numbers&) const = default;
  };

 public:
  // Operations that have been announced to the other ranks but not settled. The destructor withdraws them and frees
  // their numbers, unless the ranks had agreed on them or more has been announced since.
  class Announced {
   public:
    bool empty() const { return all_ == nullptr; }

   private:
    friend class DirectCopies;
    struct One {
      Agreement agreement;
      size_t task;
      bool reads;
      Buffers buffers{};
    };
    struct All {
      explicit All(DirectCopies& from) : copies(from), before(from.numbers_) { copies.pending_++; }
      ~All();
      DirectCopies& copies;
      const Numbers before;
      Numbers after;
      std::vector<One> ones;
    };
    std::unique_ptr<All> all_;
  };

  // Announces, in order, those tasks whose variant needs it.
  Announced announce(std::span<const Task> tasks);
  // Consents to the announced operations as soon as all others have announced them, until `deadline`. `idle`: as in
  // PeerBuffers.
  void consent(Announced& announced, uint64_t deadline, const std::function<bool()>& idle);
  // The result: the addresses of the others' buffers on this GPU, by number of the task, for those that were agreed on.
  struct Reached {
    Buffers targets{};  // to store into
    Buffers sources{};  // to read from, if `reads`
    bool reads = false;
  };
  using Agreed = std::map<size_t, Reached>;
  Agreed settle(Announced announced, uint64_t deadline);
  // Number of latest agreements in a row that failed.
  uint32_t failures() const { return failures_; }

  // The program of a collective; of an all_reduce, its all-gather phase with parts of `bytes`.
  CopyProgram programFor(const Task& task, const Buffers& targets, size_t bytes) const;
  // As in PeerBuffers. Nothing is tidied while anything is announced.
  void release(const void* address) { buffers_.release(address); }
  bool needsTidying() const { return buffers_.needsTidying(); }
  void tidy(const PeerBuffers::Idle& idle) {
    if (pending_ == 0) buffers_.tidy(idle);
  }
  CopyEngines& engines() { return engines_; }
  const CopyEngines& engines() const { return engines_; }

 private:
  uint32_t localOf(uint32_t rank) const { return plan_.peer(rank).localIndex; }
  Agreement::Subject subjectOf(const Operation& operation);

  const PlanView& plan_;
  const AgreementTable agreements_;
  const Interrupt& interrupt_;
  const uint32_t rank_, ranks_;
  const QueueUser queueUser_;
  PeerBuffers buffers_;
  CopyEngines engines_;
  Numbers numbers_;
  size_t pending_ = 0;  // announcements that are not settled
  uint32_t failures_ = 0;
};

}  // namespace ncclrun::cuda
