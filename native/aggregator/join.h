// How a member, or an aggregator for those below it, joins a node of a group's tree.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "aggregator/tree.h"
#include "aggregator/wire.h"
#include "net/net.h"

namespace ncclrun::aggregator {

// Children of an aggregator for which a group of more members has several.
inline constexpr uint32_t kDefaultFanIn = 32;

struct JoinRequest {
  Join join;
  std::vector<net::Handle> above;  // where the nodes above this one are served: its parent first, the root last

  Tree tree() const { return {join.members, join.fanIn}; }
  // Of the whole node.
  Tree::Range children() const { return tree().children(join.level, join.node); }
  // That the child contributes for.
  Tree::Range ranks() const;
  // With which the node itself joins its parent; only where there is one.
  JoinRequest ofParent() const;
};

// The request as a payload.
std::vector<std::byte> encodeJoin(const JoinRequest& request);
// False: it makes no sense. What it says of other aggregators is an address, whatever listens there.
bool decodeJoin(std::span<const std::byte> bytes, JoinRequest& out);

}  // namespace ncclrun::aggregator
