// Helper threads of the socket backend: all communicators of a process share them, and none holds up another.
#include <filesystem>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "net/socket/socket_network.h"
#include "support/check.h"

using namespace ncclrun;

namespace {

constexpr uint32_t kHelpers = 2;
constexpr size_t kBytes = 4u << 20;

// One communicator's two ends in this process.
struct Communicator {
  explicit Communicator(uint8_t number) {
    const net::SocketConfig config{
        .devices = {{.interface = "lo", .address = "127.0.0.1"}}, .token = {number}, .sockets = 2, .helpers = kHelpers};
    EXPECT(net::SocketNetwork::make(config, sending).ok() && net::SocketNetwork::make(config, receiving).ok());
    std::unique_ptr<net::Listener> listener;
    std::unique_ptr<net::Connector> connector;
    net::Handle handle = {};
    EXPECT(receiving->listen(0, handle, listener).ok() && sending->connect(0, handle, connector).ok());
    while (sender == nullptr || receiver == nullptr) {
      if (sender == nullptr) EXPECT(connector->connect(sender).ok());
      if (receiver == nullptr) EXPECT(listener->accept(receiver).ok());
    }
  }
  net::Request* send() {
    net::Request* request = nullptr;
    EXPECT(sender->isend(from.data(), kBytes, 1, {}, request).ok() && request != nullptr);
    return request;
  }
  // Sends, receives, and waits for both.
  bool transfer() {
    net::Request *sent = send(), *received = nullptr;
    const net::Buffer buffer{.address = to.data(), .bytes = kBytes, .tag = 1};
    EXPECT(receiver->irecv({&buffer, 1}, received).ok() && received != nullptr);
    for (bool isSent = false, isReceived = false; !isSent || !isReceived;) {
      if (!isSent && !sender->test(sent, isSent, {}).ok()) return false;
      if (!isReceived && !receiver->test(received, isReceived, {}).ok()) return false;
    }
    return from == to;
  }

  std::vector<std::byte> from = std::vector<std::byte>(kBytes, std::byte{7}), to = std::vector<std::byte>(kBytes);
  std::unique_ptr<net::SocketNetwork> sending, receiving;
  std::unique_ptr<net::Sender> sender;
  std::unique_ptr<net::Receiver> receiver;
};

size_t threads() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) count++;
  return count;
}

// A thread that has been joined is listed for a moment longer. False: not in time.
bool threadsBecome(size_t count) {
  for (const uint64_t begun = nowNanoseconds(); threads() != count; std::this_thread::yield()) {
    if (nowNanoseconds() - begun > 10'000'000'000) return false;
  }
  return true;
}

}  // namespace

TEST(communicators_of_a_process_share_its_helper_threads) {
  size_t withOne = 0;
  {
    std::vector<std::unique_ptr<Communicator>> all;
    all.push_back(std::make_unique<Communicator>(1));
    withOne = threads();
    for (uint8_t number = 2; number <= 8; number++) all.push_back(std::make_unique<Communicator>(number));
    EXPECT_MORE(threads() == withOne, std::to_string(threads()) + " after " + std::to_string(withOne));
    for (const auto& each : all) EXPECT(each->transfer());
  }
  EXPECT_MORE(threadsBecome(withOne - kHelpers), std::to_string(threads()) + " after " + std::to_string(withOne));
}

// Its receiver takes nothing, so that its sockets stay full.
TEST(a_communicator_whose_sockets_are_full_does_not_hold_up_another) {
  Communicator blocked(1), healthy(2);
  for (int i = 0; i < 8; i++) blocked.send();
  for (int i = 0; i < 20; i++) EXPECT(healthy.transfer());
}

TEST(communicators_that_end_leave_the_helpers_of_others_at_work) {
  Communicator lasting(1);
  for (uint8_t number = 2; number < 12; number++) {
    Communicator passing(number);
    net::Request* const open = passing.send();
    EXPECT(open != nullptr && lasting.transfer());
  }
  EXPECT(lasting.transfer());
}

TEST_MAIN
