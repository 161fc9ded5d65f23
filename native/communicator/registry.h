// Which handles name a communicator of this process. A handle is a number that is never used twice, so a destroyed or
// foreign one is told apart without looking at what it points to; whoever has looked one up may use the communicator
// while another thread frees it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "communicator/communicator.h"

namespace ncclrun {

class Registry {
 public:
  static Registry& get();

  ncclComm_t add(std::shared_ptr<Communicator> communicator);
  // Null: no such communicator.
  std::shared_ptr<Communicator> find(ncclComm_t handle);
  // The same, and it is no longer known.
  std::shared_ptr<Communicator> remove(ncclComm_t handle);

 private:
  Registry();
  uint32_t slotOf(const Communicator& communicator) const;
  template <typename Tell>
  void forAll(Tell&& notify);

  std::shared_mutex mutex_;
  uintptr_t last_;
  std::unordered_map<ncclComm_t, std::shared_ptr<Communicator>> communicators_;
};

}  // namespace ncclrun
