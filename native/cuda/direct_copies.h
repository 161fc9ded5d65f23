// Operations by which copy engines store into users' buffers directly, or kernels read them where they lie: agrees on
// them with the other ranks, finds where their buffers lie, and runs them.
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
  // Agreements so far: of all ranks, and of messages by the peer.
  struct Numbers {
    uint64_t collectives = 0;
    std::array<uint64_t, kMaxPeers> sends{}, receives{};
    bool operator==(const Numbers&) const = default;
  };

 public:
  // What the others have been told of and what is not settled. Where it ends so, they no longer count on it, and its
  // numbers are free again, unless they had agreed on it or more has been announced since.
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

  // Tells the others of the operations of the tasks whose form needs that, in their order.
  Announced announce(std::span<const Task> tasks);
  // Consents to what was announced, as soon as all others have told of it, until `deadline`. `idle` as PeerBuffers has
  // it.
  void consent(Announced& announced, uint64_t deadline, const std::function<bool()>& idle);
  // What came of it: of the tasks that are carried out so, by number, where the others' buffers lie for this GPU.
  struct Reached {
    Buffers targets{};  // that are stored into
    Buffers sources{};  // that are read, if `reads`
    bool reads = false;
  };
  using Agreed = std::map<size_t, Reached>;
  Agreed settle(Announced announced, uint64_t deadline);
  // Of what has been announced and settled since, so many in a row were not agreed on.
  uint32_t failures() const { return failures_; }

  // Of a collective; of an all_reduce how the parts of `bytes`, which are reduced, come to all.
  CopyProgram programFor(const Task& task, const Buffers& targets, size_t bytes) const;
  // Of the users' buffers, as PeerBuffers has it. Nothing is tidied while anything is announced.
  void takeBack(const void* address) { buffers_.takeBack(address); }
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
