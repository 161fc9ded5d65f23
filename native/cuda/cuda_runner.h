// Runs the operations of one call on a GPU's stream: by kernels, or by copy engines where the ranks have agreed on it.
#pragma once
#include <span>
#include <vector>

#include "cuda/cuda_launcher.h"
#include "cuda/direct_copies.h"

namespace ncclrun::cuda {

class Runner {
 public:
  // `copies` may be null: there are none.
  Runner(const PlanView& plan, uint32_t rank, Launcher& launcher, DirectCopies* copies)
      : plan_(plan), rank_(rank), launcher_(launcher), copies_(copies) {}

  // Target stream. `satisfied`: requirements of variants of kernels that hold on it.
  struct Where {
    Stream stream;
    uint64_t capture;  // 0: none
    uint32_t satisfied;
  };
  // Messages together first, then the collectives in order.
  Status run(std::span<const Task> tasks, const DirectCopies::Agreed& agreed, const Where& where);

 private:
  // A message and where its receiver's buffer lies.
  struct Message {
    const Task* task;
    const DirectCopies::Reached* reached;
  };
  Status runMessages(const std::vector<Message>& direct, const std::vector<Task>& others, const Where& where);
  Status runCollective(const Task& task, const DirectCopies::Reached& reached, const Where& where);
  Status runScatter(const Task& task, const DirectCopies::Buffers& sources, const Where& where);
  Status reduceParts(const Task& task, const DirectCopies::Reached& reached, size_t part, const Where& where);
  Status pull(const Task& task, const DirectCopies::Buffers& sources, const Where& where);

  const PlanView& plan_;
  const uint32_t rank_;
  Launcher& launcher_;
  DirectCopies* const copies_;
};

}  // namespace ncclrun::cuda
