#include "aggregator/aggregator_network.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "aggregator/aggregator_group.h"
#include "aggregator/frame_writer.h"
#include "base/clock.h"
#include "net/socket/socket_connector.h"
#include "net/socket/socket_network.h"

namespace ncclrun::aggregator {
namespace {

const std::string& networkName() {
  static const std::string name = "Aggregator";
  return name;
}

// What a member's handle says: a number that no other member has.
struct MemberHandle {
  std::array<char, 8> magic = {'n', 'c', 'a', 'g', 'm', 'e', 'm', '1'};
  net::Nonce number = {};
};

// A clock that ends what the aggregator does not end itself comes later than the aggregator's.
constexpr uint64_t kBehindServer = 1'000'000'000;  // ns

// The servers of one network, and the sockets to them.
struct Servers {
  std::unique_ptr<net::SocketNetwork> sockets;
  std::vector<net::ListenerAddress> addresses;
  net::Token token;
  uint64_t timeout;
  uint32_t fanIn;
  std::unique_ptr<Heartbeats> heartbeats;
};

class AggregatorListener final : public net::CollectiveListener {
 public:
  AggregatorListener(const Servers& servers, net::Handle handle) : servers_(servers), handle_(handle) {}

  Status connect(std::span<const net::Handle> handles, uint32_t rank,
                 std::unique_ptr<net::CollectiveGroup>& out) override {
    out = nullptr;
    if (connector_ == nullptr && !socket_.valid()) NCCLRUN_TRY(start(handles, rank));
    if (connector_ != nullptr) {
      std::vector<Descriptor> connected;
      NCCLRUN_TRY(connector_->connectSockets(connected));
      if (connected.empty()) return waits();
      introduce(std::move(connected.front()));
    }
    return awaitOthers(out);
  }

 private:
  Status start(std::span<const net::Handle> handles, uint32_t rank);
  void introduce(Descriptor socket);
  Status awaitOthers(std::unique_ptr<net::CollectiveGroup>& out);
  Status waits() const {
    if (nowNanoseconds() - since_ < servers_.timeout + kBehindServer) return {};
    return {ncclRemoteError, formatSentence("%s has not answered for %.1f s", server_.c_str(),
                                            double(servers_.timeout + kBehindServer) / 1e9)};
  }

  const Servers& servers_;
  const net::Handle handle_;
  uint64_t since_ = 0;  // nanoseconds
  std::string server_;  // "the aggregator at 10.0.0.9 port 4000"
  std::vector<std::byte> join_;
  std::unique_ptr<net::SocketConnector> connector_;
  Descriptor socket_;
  FrameReader reader_;
  FrameWriter writer_;
  std::vector<char> sentence_;
};

Status AggregatorListener::start(std::span<const net::Handle> handles, uint32_t rank) {
  if (rank >= handles.size() || handles.size() > kMaxMembers)
    return {ncclInvalidArgument, formatSentence("the collective network %s: a group of %zu has no member %u",
                                                networkName().c_str(), handles.size(), rank)};
  std::vector<uint8_t> all;
  for (const net::Handle& handle : handles) {
    MemberHandle member;
    std::memcpy(&member, handle.data(), sizeof member);
    if (member.magic != MemberHandle{}.magic)
      return {ncclInvalidArgument, formatSentence("the collective network %s: a member's handle is not one of this "
                                                  "network: do all ranks use the same one?",
                                                  networkName().c_str())};
    all.insert(all.end(), member.number.begin(), member.number.end());
  }
  if (handles[rank] != handle_)
    return {ncclInvalidArgument, formatSentence("the collective network %s: member %u listens at another handle",
                                                networkName().c_str(), rank)};
  // All members, and nobody else, derive the same identifier; it also chooses the servers.
  const Sha256Digest digest = hmacSha256(servers_.token, all);
  const size_t count = servers_.addresses.size();
  JoinRequest request;
  std::copy_n(digest.begin(), request.join.group.size(), request.join.group.begin());
  request.join.members = uint32_t(handles.size());
  request.join.fanIn = count == 1 ? kMaxMembers : servers_.fanIn;
  const Tree tree = request.tree();
  const auto serverOf = [&](uint32_t level, uint32_t node) -> const net::ListenerAddress& {
    return servers_.addresses[(digest.back() + tree.numberOf(level, node)) % count];
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
  since_ = nowNanoseconds();
  connector_ = std::make_unique<net::SocketConnector>(*servers_.sockets, 0, server);
  return {};
}

void AggregatorListener::introduce(Descriptor socket) {
  connector_.reset();
  socket_ = std::move(socket);
  FrameHeader header;
  header.kind = FrameKind::join;
  header.bytes = uint32_t(join_.size());
  writer_.queue(header, join_.data());
}

Status AggregatorListener::awaitOthers(std::unique_ptr<net::CollectiveGroup>& out) {
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

class AggregatorNetwork final : public net::CollectiveNetwork {
 public:
  explicit AggregatorNetwork(Servers servers) : servers_(std::move(servers)) {
    device_.name = servers_.sockets->devices()[0].name;
    device_.maxCollectiveBytes = uint64_t(1) << 40;
  }

  const std::string& name() const override { return networkName(); }
  std::span<const net::Device> devices() const override { return {&device_, 1}; }
  bool threadBound() const override { return false; }
  bool canReduce(net::Reduction reduction) const override { return isReducible(reduction); }
  bool canGather() const override { return false; }

  Status listen(uint32_t device, net::Handle& handle, std::unique_ptr<net::CollectiveListener>& out) override {
    if (device != 0)
      return {ncclInvalidArgument,
              formatSentence("the collective network %s: there is no device %u", networkName().c_str(), device)};
    MemberHandle member;
    if (!net::fillRandom(member.number.data(), member.number.size()))
      return {ncclSystemError, "the system gives no random numbers"};
    handle = {};
    std::memcpy(handle.data(), &member, sizeof member);
    out = std::make_unique<AggregatorListener>(servers_, handle);
    return {};
  }

 private:
  const Servers servers_;
  net::Device device_;
};

}  // namespace

Status makeAggregatorNetwork(const NetworkConfig& config, std::unique_ptr<net::CollectiveNetwork>& out) {
  Servers servers{.sockets = nullptr,
                  .addresses = {},
                  .token = config.token,
                  .timeout = config.timeout,
                  .fanIn = std::max(config.fanIn, 2u),
                  .heartbeats = std::make_unique<Heartbeats>(config.timeout / kHeartbeatsPerTimeout)};
  for (const net::Handle& handle : config.servers) {
    const std::optional<net::ListenerAddress> address = net::decodeHandle(handle);
    if (!address.has_value()) return {ncclInvalidArgument, "a handle is not that of an aggregator"};
    servers.addresses.push_back(*address);
  }
  if (servers.addresses.empty()) return {ncclInvalidArgument, "there is no aggregator"};
  net::SocketConfig sockets;
  sockets.devices = {{.interface = config.interface, .address = config.address}};
  sockets.token = config.token;
  NCCLRUN_TRY(net::SocketNetwork::make(std::move(sockets), servers.sockets));
  out = std::make_unique<AggregatorNetwork>(std::move(servers));
  return {};
}

}  // namespace ncclrun::aggregator
