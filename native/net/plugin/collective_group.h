// One member's side of a group over a plugin's collective network.
#pragma once
#include <array>
#include <deque>
#include <memory>

#include "net/collective_network.h"
#include "net/plugin/collective_plugin.h"

namespace ncclrun::net::plugin {

// Which pairs of a type and an operator a plugin reduces.
class ReducibleTypes {
 public:
  explicit ReducibleTypes(CollectivePlugin& plugin);
  bool has(Reduction reduction) const;

 private:
  // A plugin has no average: callers reduce by a sum and divide.
  static constexpr size_t kOperators = ncclAvg;
  std::array<std::array<bool, kOperators>, ncclNumTypes> supported_{};
};

// Takes over `comm`, and closes it at the end.
std::unique_ptr<CollectiveGroup> makeGroup(CollectivePlugin& plugin, const ReducibleTypes& types, const Device& device,
                                           void* comm);

}  // namespace ncclrun::net::plugin
