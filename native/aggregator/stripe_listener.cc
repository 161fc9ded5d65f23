#include "aggregator/stripe_listener.h"

#include <algorithm>
#include <utility>

#include "aggregator/aggregator_group.h"
#include "base/clock.h"

namespace ncclrun::aggregator {
namespace {

// A clock that ends what the aggregator does not end itself comes later than the aggregator's.
constexpr uint64_t kBehindServer = 1'000'000'000;  // ns

GroupId idOf(const net::Token& token, const Sha256Digest& digest, uint32_t stripe) {
  std::vector<uint8_t> named(digest.begin(), digest.end());
  named.push_back(uint8_t(stripe));
  const Sha256Digest own = hmacSha256(token, named);
  GroupId id;
  std::copy_n(own.begin(), id.size(), id.begin());
  return id;
}

}  // namespace

uint32_t stripesOf(uint32_t members, const Servers& servers) {
  const uint32_t ofTree = Tree(members, servers.fanIn).size();
  return std::clamp(uint32_t(servers.addresses.size()) / ofTree, 1u, uint32_t(net::kMaxCollectives));
}

StripeListener::StripeListener(const Servers& servers, const Sha256Digest& digest, uint32_t stripe, uint32_t rank,
                               uint32_t members)
    : servers_(servers), since_(nowNanoseconds()) {
  JoinRequest request;
  request.join.group = idOf(servers.token, digest, stripe);
  request.join.members = members;
  request.join.fanIn = servers.fanIn;
  const Tree tree = request.tree();
  const size_t first = digest.back() + stripe * tree.size();
  const auto serverOf = [&](uint32_t level, uint32_t node) -> const net::ListenerAddress& {
    return servers.addresses[(first + tree.numberOf(level, node)) % servers.addresses.size()];
  };
  request.join.node = tree.parentOf(0, rank);
  request.join.child = rank - request.children().first;
  for (uint32_t level = 1, node = request.join.node; level < tree.levels(); level++) {
    node = tree.parentOf(level, node);
    request.above.push_back(net::encodeHandle(serverOf(level, node)));
  }
  join_ = encodeJoin(request);
  const net::ListenerAddress& server = serverOf(0, request.join.node);
  server_ = "the aggregator at " + server.address.textWithPort();
  connector_ = std::make_unique<net::SocketConnector>(*servers.sockets, 0, server);
}

Status StripeListener::connect(std::unique_ptr<net::CollectiveGroup>& out) {
  out = nullptr;
  if (connector_ != nullptr) {
    std::vector<Descriptor> connected;
    NCCLRUN_TRY(connector_->connectSockets(connected));
    if (connected.empty()) return waits();
    introduce(std::move(connected.front()));
  }
  return awaitOthers(out);
}

Status StripeListener::waits() const {
  if (nowNanoseconds() - since_ < servers_.timeout + kBehindServer) return {};
  return {ncclRemoteError, formatSentence("%s has not answered for %.1f s", server_.c_str(),
                                          double(servers_.timeout + kBehindServer) / 1e9)};
}

void StripeListener::introduce(Descriptor socket) {
  connector_.reset();
  socket_ = std::move(socket);
  FrameHeader header;
  header.kind = FrameKind::join;
  header.bytes = uint32_t(join_.size());
  writer_.queue(header, join_.data());
}

Status StripeListener::awaitOthers(std::unique_ptr<net::CollectiveGroup>& out) {
  writer_.flush(socket_.get());  // that the connection has ended is seen when it is read
  for (;;) {
    const FrameReader::Step step = reader_.step(socket_.get());
    if (step == FrameReader::Step::nothing) return waits();
    if (step == FrameReader::Step::closed) return {ncclRemoteError, server_ + ": " + reader_.whyClosed()};
    const FrameHeader& header = reader_.header();
    if (step == FrameReader::Step::payload) {
      const Status failure = failureOf(header, sentence_);
      return {failure.code, server_ + ": " + failure.sentence};
    }
    if (header.magic != kFrameMagic) return {ncclInternalError, server_ + " sends what this protocol does not have"};
    if (header.kind == FrameKind::heartbeat && header.bytes == 0) continue;
    if (header.kind == FrameKind::joined && header.bytes == 0) {
      return makeAggregatorGroup({.socket = std::move(socket_),
                                  .server = server_,
                                  .timeout = servers_.timeout,
                                  .heartbeats = *servers_.heartbeats},
                                 reader_, out);
    }
    if (header.kind != FrameKind::failed || header.bytes == 0 || header.bytes > kMaxSentenceBytes)
      return {ncclInternalError, server_ + " sends what this protocol does not have"};
    sentence_.resize(header.bytes);
    reader_.expect(reinterpret_cast<std::byte*>(sentence_.data()));
  }
}

}  // namespace ncclrun::aggregator
