// Connections of both directions that carry their messages together (net::Network::pair): in one process, both sides
// moved by one thread.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "net/side.h"
#include "net/socket/socket_network.h"
#include "support/check.h"

using namespace ncclrun;

namespace {

constexpr uint64_t kMax = 30'000'000'000;  // nanoseconds
constexpr size_t kLarge = 200'000;
constexpr uint64_t kWordsOfThreads = 5'000;

// One process's side of both directions.
struct Half {
  std::unique_ptr<net::SocketNetwork> network;
  std::unique_ptr<net::Sender> sender;
  std::unique_ptr<net::Receiver> receiver;
  std::unique_ptr<net::Listener> listener;
  std::unique_ptr<net::Connector> connector;
  net::Handle handle = {};

  Half(uint32_t sockets, uint32_t helpers) {
    const net::SocketConfig config{
        .devices = {{.interface = "lo", .address = "127.0.0.1"}}, .token = {7}, .sockets = sockets, .helpers = helpers};
    EXPECT(net::SocketNetwork::make(config, network).ok() && network->listen(0, handle, listener).ok());
  }
  bool open() {
    if (sender == nullptr) EXPECT(connector->connect(sender).ok());
    if (receiver == nullptr) EXPECT(listener->accept(receiver).ok());
    return sender != nullptr && receiver != nullptr;
  }
  void pair() { network->pair(*sender, *receiver); }
};

struct Halves {
  std::array<Half, 2> sides;
  explicit Halves(uint32_t sockets = 1, uint32_t helpers = 0) : sides{Half(sockets, helpers), Half(sockets, helpers)} {
    for (size_t i = 0; i < 2; i++) EXPECT(sides[i].network->connect(0, sides[1 - i].handle, sides[i].connector).ok());
    for (bool areOpen = false; !areOpen;) {
      areOpen = true;
      for (Half& side : sides) areOpen = side.open() && areOpen;
    }
  }
};

// One direction: messages of these sizes, several under way, each checked when it has come.
class Flow {
 public:
  Flow(net::Sender& sender, net::Receiver& receiver, std::vector<size_t> sizes, uint64_t seed)
      : sender_(sender), receiver_(receiver), sizes_(std::move(sizes)), seed_(seed) {}

  // Moves what can be moved; true when all messages have come.
  bool advance() {
    while (sent_.size() < kDepth && begun_ < sizes_.size() && send()) {
    }
    while (open_.size() < kDepth && posted_ < sizes_.size() && post()) {
    }
    while (!sent_.empty() && isDone(sender_, sent_.front(), nullptr)) sent_.pop_front();
    size_t bytes = 0;
    while (!open_.empty() && isDone(receiver_, open_.front(), &bytes)) {
      EXPECT(bytes == sizes_[arrived_] && test::hasPattern(open_.front().data.get(), bytes, seed_ + arrived_));
      arrived_++;
      open_.pop_front();
    }
    return arrived_ == sizes_.size() && sent_.empty();
  }

 private:
  static constexpr size_t kDepth = 5;
  struct Transfer {
    std::unique_ptr<std::byte[]> data;
    net::Request* request = nullptr;
  };

  bool send() {
    Transfer& next = sent_.emplace_back();
    next.data = std::make_unique_for_overwrite<std::byte[]>(sizes_[begun_] + 8);
    test::fillPattern(next.data.get(), sizes_[begun_], seed_ + begun_);
    EXPECT(sender_.isend(next.data.get(), sizes_[begun_], 1, {}, next.request).ok());
    if (next.request != nullptr) {
      begun_++;
      return true;
    }
    sent_.pop_back();
    return false;
  }
  bool post() {
    Transfer& next = open_.emplace_back();
    next.data = std::make_unique_for_overwrite<std::byte[]>(kLarge + 8);
    const net::Buffer buffer{.address = next.data.get(), .bytes = kLarge, .tag = 1};
    EXPECT(receiver_.irecv({&buffer, 1}, next.request).ok() && next.request != nullptr);
    posted_++;
    return true;
  }
  static bool isDone(net::Connection& connection, Transfer& transfer, size_t* bytes) {
    bool done = false;
    size_t size = 0;
    EXPECT(connection.test(transfer.request, done, {&size, 1}).ok());
    if (bytes != nullptr) *bytes = size;
    return done;
  }

  net::Sender& sender_;
  net::Receiver& receiver_;
  const std::vector<size_t> sizes_;
  const uint64_t seed_;
  size_t begun_ = 0, posted_ = 0, arrived_ = 0;
  std::deque<Transfer> sent_, open_;
};

// Small ones, then large ones among them, then small ones again.
std::vector<size_t> mixedSizes(size_t seed) {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < 400; i++) {
    const size_t drawn = test::patternAt(i, seed) % 997;
    const bool isLarge = i >= 100 && i < 300 && drawn % 7 == 0;
    sizes.push_back(isLarge ? kLarge - drawn : drawn * (drawn % 3));
  }
  return sizes;
}

void run(std::span<Flow* const> flows) {
  const uint64_t end = nowNanoseconds() + kMax;
  for (bool areOver = false; !areOver;) {
    areOver = true;
    for (Flow* flow : flows) areOver = flow->advance() && areOver;
    if (nowNanoseconds() > end) return EXPECT(!"all messages have come in time");
  }
}

void exchange(Halves& both, const std::vector<size_t>& forth, const std::vector<size_t>& back) {
  auto& [a, b] = both.sides;
  Flow first(*a.sender, *b.receiver, forth, 1), second(*b.sender, *a.receiver, back, 1000);
  run(std::array{&first, &second});
}

// Sockets of this process on which data has been both sent and received.
size_t socketsBothWays() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    tcp_info info{};
    socklen_t length = sizeof info;
    const int descriptor = std::stoi(entry.path().filename());
    // The handshake takes two segments each way.
    constexpr uint32_t kHandshake = 2;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_data_segs_in > kHandshake &&
        info.tcpi_data_segs_out > kHandshake)
      count++;
  }
  return count;
}

void pairBoth(Halves& both) {
  for (Half& side : both.sides) side.pair();
  exchange(both, std::vector<size_t>(50, 8), std::vector<size_t>(50, 8));
}

// The next message's word; none: the connection has failed.
std::optional<uint64_t> receiveWord(net::Receiver& receiver) {
  uint64_t word = 0;
  const net::Buffer buffer{.address = &word, .bytes = sizeof word, .tag = 1};
  net::Request* request = nullptr;
  bool done = false;
  Status status = receiver.irecv({&buffer, 1}, request);
  while (status.ok() && !done) status = receiver.test(request, done, {});
  return status.ok() ? std::optional(word) : std::nullopt;
}

void sendWord(net::Sender& sender, const uint64_t& word) {
  net::Request* request = nullptr;
  EXPECT(sender.isend(&word, sizeof word, 1, {}, request).ok() && request != nullptr);
  for (bool done = false; !done;) EXPECT(sender.test(request, done, {}).ok());
}

}  // namespace

TEST(small_messages_of_both_directions_go_over_one_socket) {
  const std::vector<size_t> small(50, 8);
  for (const uint32_t helpers : {0u, 2u}) {
    for (const bool arePaired : {false, true}) {
      Halves both(1, helpers);
      for (Half& side : both.sides) {
        if (arePaired) side.pair();
      }
      exchange(both, small, small);
      EXPECT(socketsBothWays() == (arePaired ? 2 : 0));
    }
  }
}

TEST(messages_of_all_sizes_arrive_whenever_the_sides_pair_their_connections) {
  for (const auto& [sockets, helpers] : {std::pair(1u, 0u), {3u, 0u}, {1u, 1u}, {3u, 2u}}) {
    for (size_t first = 0; first < 2; first++) {
      Halves both(sockets, helpers);
      exchange(both, {8, 8, 8}, {8, 8, 8});
      both.sides[first].pair();
      exchange(both, mixedSizes(1), mixedSizes(2));
      both.sides[1 - first].pair();
      exchange(both, mixedSizes(3), mixedSizes(4));
      exchange(both, std::vector<size_t>(100, 8), std::vector<size_t>(100, kLarge));
      exchange(both, std::vector<size_t>(100, kLarge), std::vector<size_t>(100, 8));
    }
  }
}

TEST(what_was_sent_arrives_though_its_side_closes_both_directions_with_something_unread) {
  constexpr uint64_t kWords = 5;
  for (size_t leaving = 0; leaving < 2; leaving++) {
    Halves both;
    pairBoth(both);
    Half &leaves = both.sides[leaving], &stays = both.sides[1 - leaving];
    sendWord(*stays.sender, 0);
    for (uint64_t word = 1; word <= kWords; word++) sendWord(*leaves.sender, word);
    leaves.sender.reset();
    leaves.receiver.reset();
    leaves.listener.reset();
    leaves.network.reset();
    const uint64_t unread = 0;
    net::Request* request = nullptr;
    stays.sender->isend(&unread, sizeof unread, 1, {}, request);
    for (uint64_t word = 1; word <= kWords; word++) EXPECT(receiveWord(*stays.receiver) == word);
    EXPECT(!receiveWord(*stays.receiver).has_value());
  }
}

TEST(each_direction_outlives_the_other) {
  for (size_t i = 0; i < 4; i++) {
    Halves both;
    pairBoth(both);
    Half &one = both.sides[i % 2], &other = both.sides[1 - i % 2];
    if (i < 2) {
      one.sender.reset();
      EXPECT(!receiveWord(*other.receiver).has_value());
      other.receiver.reset();
    } else {
      other.receiver.reset();
      one.sender.reset();
    }
    Flow flow(*other.sender, *one.receiver, mixedSizes(5), 1);
    run(std::array{&flow});
  }
}

TEST(each_object_serves_a_thread_of_its_own) {
  Halves both;
  pairBoth(both);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; i++) {
    threads.emplace_back([&sender = *both.sides[i].sender] {
      for (uint64_t word = 0; word < kWordsOfThreads; word++) sendWord(sender, word);
    });
    threads.emplace_back([&receiver = *both.sides[i].receiver] {
      for (uint64_t word = 0; word < kWordsOfThreads; word++) EXPECT(receiveWord(receiver) == word);
    });
  }
  for (std::thread& each : threads) each.join();
}

TEST_MAIN
