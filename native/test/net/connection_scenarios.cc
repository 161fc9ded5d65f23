// Making and closing connections: late, many, with requests open, one blocked beside a healthy one.
#include <array>

#include "net/scenarios.h"
#include "net/side.h"

namespace ncclrun::test {
namespace {

constexpr size_t kBytes = 100'000;

void sendSmall(Side& side, net::Sender& sender, uint64_t seed) {
  RegisteredMemory memory(sender, kBytes);
  side.registration = memory.registration();
  fillPattern(memory.data(), kBytes, seed);
  net::Request* request = nullptr;
  EXPECT(side.send(sender, memory.data(), kBytes, 0, request).ok());
  if (request != nullptr) EXPECT(side.wait(sender, request, {}).ok());
}

void receiveSmall(Side& side, net::Receiver& receiver, uint64_t seed) {
  RegisteredMemory memory(receiver, kBytes);
  const net::Buffer buffer{memory.data(), kBytes, 0, memory.registration()};
  net::Request* request = nullptr;
  EXPECT(side.receive(receiver, {&buffer, 1}, request).ok());
  if (request != nullptr) EXPECT(side.wait(receiver, request, {}).ok());
  EXPECT(hasPattern(memory.data(), kBytes, seed));
}

// The connecting side polls a hundred times before the other side accepts at all.
void connectEarly(Side& side) {
  auto connector = side.connector();
  std::unique_ptr<net::Sender> sender;
  for (int i = 0; i < 100; i++) {
    if (sender != nullptr) break;  // a backend may complete before the other side accepts
    EXPECT(connector->connect(sender).ok());
    usleep(500);
  }
  EXPECT(side.meet());
  if (sender == nullptr) sender = side.finish(*connector);
  sendSmall(side, *sender, 1);
  EXPECT(side.meet());
}

void acceptLate(Side& side) {
  auto listener = side.listen();
  EXPECT(side.meet());
  auto receiver = side.accept(*listener);
  receiveSmall(side, *receiver, 1);
  EXPECT(side.meet());
}

void connectLate(Side& side) {
  net::Handle handle = {};
  EXPECT(side.hear(handle));
  EXPECT(side.meet());
  auto sender = side.finish(*side.connector(handle));
  sendSmall(side, *sender, 2);
  EXPECT(side.meet());
}

void acceptEarly(Side& side) {
  auto listener = side.listen();
  std::unique_ptr<net::Receiver> receiver;
  for (int i = 0; i < 100; i++) EXPECT(listener->accept(receiver).ok() && receiver == nullptr);
  EXPECT(side.meet());
  receiver = side.accept(*listener);
  receiveSmall(side, *receiver, 2);
  EXPECT(side.meet());
}

void connectMany(Side& side) {
  const uint32_t count = side.traits().connections;
  std::vector<std::unique_ptr<net::Connector>> connectors;
  std::vector<std::unique_ptr<net::Sender>> senders(count);
  for (uint32_t i = 0; i < count; i++) connectors.push_back(side.connector());
  EXPECT(side.until([&] {
    bool all = true;
    for (uint32_t i = 0; i < count; i++) {
      if (senders[i] != nullptr) continue;
      const Status status = connectors[i]->connect(senders[i]);
      EXPECT_MORE(status.ok(), status.sentence);
      if (!status.ok()) return true;
      all = all && senders[i] != nullptr;
    }
    return all;
  }));
  for (uint32_t i = 0; i < count; i++) {
    if (senders[i] != nullptr) sendSmall(side, *senders[i], i);
  }
  EXPECT(side.meet());
}

void acceptMany(Side& side) {
  const uint32_t count = side.traits().connections;
  std::vector<std::unique_ptr<net::Listener>> listeners;
  std::vector<std::unique_ptr<net::Receiver>> receivers(count);
  for (uint32_t i = 0; i < count; i++) listeners.push_back(side.listen());
  EXPECT(side.until([&] {
    bool all = true;
    for (uint32_t i = 0; i < count; i++) {
      if (receivers[i] != nullptr) continue;
      const Status status = listeners[i]->accept(receivers[i]);
      EXPECT_MORE(status.ok(), status.sentence);
      if (!status.ok()) return true;
      all = all && receivers[i] != nullptr;
    }
    return all;
  }));
  for (uint32_t i = 0; i < count; i++) {
    if (receivers[i] != nullptr) receiveSmall(side, *receivers[i], i);
  }
  EXPECT(side.meet());
}

void connectThreeToOne(Side& side) {
  net::Handle handle = {};
  EXPECT(side.hear(handle));
  std::vector<std::unique_ptr<net::Sender>> senders;
  for (uint64_t i = 0; i < 3; i++) {
    senders.push_back(side.finish(*side.connector(handle)));
    sendSmall(side, *senders.back(), i);
  }
  EXPECT(side.meet());
}

void acceptThree(Side& side) {
  auto listener = side.listen();
  std::vector<std::unique_ptr<net::Receiver>> receivers;
  for (uint64_t i = 0; i < 3; i++) {
    receivers.push_back(side.accept(*listener));
    receiveSmall(side, *receivers.back(), i);
  }
  EXPECT(side.meet());
}

// Requests are open on both sides when the connection is closed; the next connection is as good as the first.
void closeSendOpen(Side& side) {
  for (uint64_t round = 0; round < 3; round++) {
    auto sender = side.connect();
    std::vector<std::byte> memory(32u << 20);
    const net::Region region{.address = memory.data(), .bytes = memory.size()};
    EXPECT(sender->registerMemory(region, side.registration).ok());
    for (int i = 0; i < 4; i++) {
      net::Request* request = nullptr;
      EXPECT(sender
                 ->isend(memory.data(), std::min<size_t>(memory.size(), side.device().maxMessageBytes), 0,
                         side.registration, request)
                 .ok());
    }
    EXPECT(side.meet());
    sender = nullptr;
    EXPECT(side.meet());
  }
}

void closeReceiveOpen(Side& side) {
  for (uint64_t round = 0; round < 3; round++) {
    auto receiver = side.listenAndAccept();
    std::vector<std::byte> memory(32u << 20);
    const net::Region region{.address = memory.data(), .bytes = memory.size()};
    EXPECT(receiver->registerMemory(region, side.registration).ok());
    if (round == 1) {
      const net::Buffer buffer{memory.data(), memory.size(), 0, side.registration};
      net::Request* request = nullptr;
      EXPECT(receiver->irecv({&buffer, 1}, request).ok());
    }
    EXPECT(side.meet());
    if (round == 2) EXPECT(side.meet());
    receiver = nullptr;
    if (round != 2) EXPECT(side.meet());
  }
}

// Nobody receives on the first connection; the second one is not held up by it.
void sendBesideBlocked(Side& side) {
  auto blocked = side.connect();
  auto healthy = side.connect();
  RegisteredMemory memory(*blocked, 64u << 20);
  const size_t bytes = std::min<size_t>(64u << 20, side.device().maxMessageBytes);
  std::array<net::Request*, 3> open = {};
  for (net::Request*& request : open)
    EXPECT(blocked->isend(memory.data(), bytes, 0, memory.registration(), request).ok());
  for (uint64_t i = 0; i < 20; i++) sendSmall(side, *healthy, i);
  EXPECT(side.meet());
  // Where a backend has not taken a message before it was awaited, it does now.
  side.registration = memory.registration();
  for (net::Request* request : open) {
    Status status;
    if (request == nullptr) status = side.send(*blocked, memory.data(), bytes, 0, request);
    if (request != nullptr) status = side.wait(*blocked, request, {});
    EXPECT_MORE(status.ok(), status.sentence);
  }
  EXPECT(side.meet());
}

void receiveBesideBlocked(Side& side) {
  auto blocked = side.listenAndAccept();
  auto healthy = side.listenAndAccept();
  for (uint64_t i = 0; i < 20; i++) receiveSmall(side, *healthy, i);
  EXPECT(side.meet());
  RegisteredMemory memory(*blocked, 64u << 20);
  const size_t bytes = std::min<size_t>(64u << 20, side.device().maxMessageBytes);
  for (int i = 0; i < 3; i++) {
    const net::Buffer buffer{memory.data(), bytes, 0, memory.registration()};
    net::Request* request = nullptr;
    Status status = side.receive(*blocked, {&buffer, 1}, request);
    if (request != nullptr) status = side.wait(*blocked, request, {});
    EXPECT_MORE(status.ok(), status.sentence);
  }
  EXPECT(side.meet());
}

}  // namespace

std::vector<Scenario> connectionScenarios() {
  return {
      {"the connector waits for a side that accepts late", connectEarly, acceptLate},
      {"accept does not block while nobody connects", connectLate, acceptEarly},
      {"two sides open many connections at once", connectMany, acceptMany},
      {"one listener accepts several connections", connectThreeToOne, acceptThree, false, false,
       [](const BackendTraits& traits) { return traits.acceptsMany; }},
      {"a connection opens after one that was closed with requests open", closeSendOpen, closeReceiveOpen},
      {"a blocked connection does not hold up another", sendBesideBlocked, receiveBesideBlocked},
  };
}

}  // namespace ncclrun::test
