// A connection whose ring of slots kernels fill or empty, moved as the proxy does: only when it hears of something.
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "net/proxy/net_connection.h"
#include "net/socket/socket_network.h"
#include "support/check.h"

using namespace ncclrun;

namespace {

constexpr uint32_t kSteps = 4, kStepBytes = 64;
constexpr size_t kStride = cuda::kNetMessageHeaderBytes + kStepBytes;

// What the kernels of one side share with the proxy.
struct KernelSide {
  alignas(64) std::array<uint64_t, cuda::kMaxNetSteps> posts = {};
  uint32_t tail = 0, head = 0;
  alignas(64) std::array<std::byte, kSteps* kStride> slots = {};

  DeviceRing ring() {
    return {.posts = posts.data(),
            .tail = &tail,
            .head = &head,
            .slots = slots.data(),
            .stride = kStride,
            .bytes = slots.size(),
            .lines = nullptr,
            .lineStride = 0};
  }
  std::byte* payload(uint32_t step) { return slots.data() + step % kSteps * kStride + cuda::kNetMessageHeaderBytes; }
  void post(uint32_t step, std::byte value, uint32_t bytes) {
    std::memset(payload(step), int(value), bytes);
    std::atomic_ref(posts[step % cuda::kMaxNetSteps]).store(uint64_t(step + 1) << 32 | bytes);
  }
};

// One end: what it has to move is moved when its network has events, somebody asks for it, or kernels have done
// something.
struct End {
  End(bool sends, uint8_t token) {
    const net::SocketConfig config{.devices = {{.interface = "lo", .address = "127.0.0.1"}}, .token = {token}};
    EXPECT(net::SocketNetwork::make(config, network).ok());
    EXPECT(NetConnection::make({.network = *network,
                                .device = 0,
                                .sends = sends,
                                .steps = kSteps,
                                .stepBytes = kStepBytes,
                                .peerName = "the other rank",
                                .busy = busy,
                                .ring = kernels.ring()},
                               connection)
               .ok());
  }
  void move() {
    const bool hasEvents = network->clearEvents();
    if (hasEvents || connection->watched.exchange(false) || connection->hasDeviceNews()) connection->advance();
  }

  KernelSide kernels;
  std::atomic<int> busy{0};
  std::unique_ptr<net::SocketNetwork> network;
  std::unique_ptr<NetConnection> connection;
};

}  // namespace

TEST(what_kernels_post_before_a_connection_is_open_is_sent_when_it_is) {
  End sender(true, 1), receiver(false, 1);
  net::Handle handle = {};
  EXPECT(receiver.connection->listen(handle).ok());
  receiver.connection->watched.store(true);
  sender.kernels.post(0, std::byte{7}, 17);
  sender.move();  // the proxy has taken the post
  EXPECT(!sender.connection->hasDeviceNews() && !sender.connection->isOpen());
  sender.connection->connectTo(handle);
  const auto tail = std::atomic_ref(receiver.kernels.tail);
  for (const uint64_t begun = nowNanoseconds(); tail.load() == 0 && nowNanoseconds() - begun < 10'000'000'000;) {
    sender.move();
    receiver.move();
  }
  EXPECT(tail.load() == 1);
  for (uint32_t i = 0; i < 17; i++) EXPECT(receiver.kernels.payload(0)[i] == std::byte{7});
}

TEST_MAIN
