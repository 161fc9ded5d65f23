// A pair of NICs measured by two threads, each in the role of one rank, over sockets of this machine.
#include <array>
#include <future>
#include <memory>
#include <string>

#include "expect.h"
#include "net/measure/pair_measurement.h"
#include "net/socket/socket_network.h"

using namespace ncclrun;
using namespace ncclrun::net;

namespace {

std::unique_ptr<SocketNetwork> network() {
  std::unique_ptr<SocketNetwork> made;
  EXPECT(SocketNetwork::make({.devices = {{.interface = "lo", .address = "127.0.0.1"}}, .token = Token{1}}, made).ok());
  return made;
}

// Latency, then each size both ways: 1 byte is less than the count that the receiver sends back, the last one is no
// multiple of a page.
constexpr std::array<uint64_t, 3> kSizes = {1, 65'536, (3 << 20) + 5};

struct Rank {
  std::unique_ptr<SocketNetwork> own = network();
  PairMeasurement pair{*own, 0};
  Handle handle = {};
  Latency latency;
  std::array<double, kSizes.size()> received = {};

  Status measure(bool leads, const Handle& peer) {
    NCCLRUN_TRY(pair.connect(peer));
    NCCLRUN_TRY(pair.latency(leads, latency));
    for (const bool leaderSends : {true, false}) {
      for (size_t i = 0; i < kSizes.size(); i++)
        NCCLRUN_TRY(leads == leaderSends ? pair.send(kSizes[i]) : pair.receive(kSizes[i], received[i]));
    }
    return {};
  }
};

void bothSidesMeasure() {
  Rank one, other;
  EXPECT(one.pair.listen(one.handle).ok() && other.pair.listen(other.handle).ok());
  auto follower = std::async(std::launch::async, [&] { return other.measure(false, one.handle); });
  const Status led = one.measure(true, other.handle);
  const Status followed = follower.get();
  EXPECT(led.ok());
  EXPECT(followed.ok());
  EXPECT(one.latency.median > 0 && one.latency.percentile99 >= one.latency.median);
  EXPECT(other.latency.median == 0);
  for (size_t i = 0; i < kSizes.size(); i++) EXPECT(one.received[i] > 0 && other.received[i] > 0);
  EXPECT(one.received[1] > one.received[0]);
}

// The other side is gone before it has measured: an error, and no wait for ever.
void peerThatLeavesIsAnError() {
  Rank one;
  auto other = std::make_unique<Rank>();
  EXPECT(one.pair.listen(one.handle).ok() && other->pair.listen(other->handle).ok());
  auto follower = std::async(std::launch::async, [&] { return other->pair.connect(one.handle); });
  EXPECT(one.pair.connect(other->handle).ok());
  EXPECT(follower.get().ok());
  other.reset();
  Latency latency;
  EXPECT(!one.pair.latency(true, latency).ok());
}

}  // namespace

int main() {
  bothSidesMeasure();
  peerThatLeavesIsAnError();
  return 0;
}
