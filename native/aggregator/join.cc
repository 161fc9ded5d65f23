#include "aggregator/join.h"

#include <cstring>

#include "net/socket/address.h"

namespace ncclrun::aggregator {

Tree::Range JoinRequest::ranks() const {
  const uint32_t child = children().first + join.child;
  return join.level == 0 ? Tree::Range{child, 1} : tree().ranks(join.level - 1, child);
}

JoinRequest JoinRequest::ofParent() const {
  JoinRequest up{join, {above.begin() + 1, above.end()}};
  up.join.level++;
  up.join.node = tree().parentOf(up.join.level, join.node);
  up.join.child = join.node - up.children().first;
  return up;
}

std::vector<std::byte> encodeJoin(const JoinRequest& request) {
  std::vector<std::byte> bytes(sizeof(Join) + request.above.size() * net::kHandleBytes);
  std::memcpy(bytes.data(), &request.join, sizeof(Join));
  std::byte* to = bytes.data() + sizeof(Join);
  for (const net::Handle& handle : request.above) {
    std::memcpy(to, handle.data(), handle.size());
    to += handle.size();
  }
  return bytes;
}

bool decodeJoin(std::span<const std::byte> bytes, JoinRequest& out) {
  if (bytes.size() < sizeof(Join)) return false;
  Join& join = out.join;
  std::memcpy(&join, bytes.data(), sizeof join);
  if (join.version != kProtocolVersion || join.members == 0 || join.members > kMaxMembers || join.fanIn < 2)
    return false;
  const Tree tree = out.tree();
  if (join.level >= tree.levels() || join.node >= tree.nodes(join.level)) return false;
  if (join.child >= tree.children(join.level, join.node).count) return false;
  const size_t above = tree.levels() - 1 - join.level;
  if (bytes.size() != sizeof(Join) + above * net::kHandleBytes) return false;
  out.above.resize(above);
  for (size_t i = 0; i < above; i++) {
    std::memcpy(out.above[i].data(), bytes.data() + sizeof(Join) + i * net::kHandleBytes, net::kHandleBytes);
    if (!net::decodeHandle(out.above[i]).has_value()) return false;
  }
  return true;
}

}  // namespace ncclrun::aggregator
