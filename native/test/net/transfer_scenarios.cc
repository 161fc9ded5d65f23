// Messages of all sizes, many at a time, in groups, before and after their receives.
#include <algorithm>
#include <array>
#include <deque>
#include <numeric>

#include "net/scenarios.h"
#include "net/side.h"

namespace ncclrun::test {
namespace {

constexpr size_t kMiB = size_t(1) << 20;
constexpr std::array<size_t, 16> kSizes = {0,     1,      7,      8,      96,       128,      129,       4'095,
                                           4'096, 65'535, 65'536, 65'537, kMiB + 3, 5 * kMiB, 16 * kMiB, 48 * kMiB + 5};

void sendOne(Side& side, net::Sender& sender, const std::byte* data, size_t bytes, int tag) {
  net::Request* request = nullptr;
  Status status = side.send(sender, data, bytes, tag, request);
  EXPECT_MORE(status.ok() && request != nullptr, status.sentence);
  if (request == nullptr) return;
  std::array<size_t, 1> size = {bytes};
  status = side.wait(sender, request, size, 60);
  EXPECT_MORE(status.ok(), status.sentence);
  EXPECT(size[0] == bytes);
}

// The bytes that have come; the capacity where the backend does not report them.
size_t receiveOne(Side& side, net::Receiver& receiver, const net::Buffer& buffer) {
  net::Request* request = nullptr;
  Status status = side.receive(receiver, {&buffer, 1}, request);
  EXPECT_MORE(status.ok() && request != nullptr, status.sentence);
  if (request == nullptr) return 0;
  std::array<size_t, 1> size = {buffer.bytes};
  status = side.wait(receiver, request, size, 60);
  EXPECT_MORE(status.ok(), status.sentence);
  return size[0];
}

template <class Sizes>
void sendSizes(Side& side, const Sizes& sizes) {
  auto sender = side.connect();
  RegisteredMemory memory(*sender, *std::max_element(sizes.begin(), sizes.end()) + 8);
  side.registration = memory.registration();
  uint64_t seed = 0;
  for (const size_t bytes : sizes) {
    for (const size_t shift : {size_t(0), size_t(1)}) {
      fillPattern(memory.data() + shift, bytes, seed++);
      if (bytes <= side.device().maxMessageBytes) sendOne(side, *sender, memory.data() + shift, bytes, int(seed));
    }
  }
  EXPECT(side.meet());
}

template <class Sizes>
void receiveSizes(Side& side, const Sizes& sizes) {
  auto receiver = side.listenAndAccept();
  RegisteredMemory memory(*receiver, *std::max_element(sizes.begin(), sizes.end()) + 8);
  uint64_t seed = 0;
  for (const size_t bytes : sizes) {
    for (const size_t shift : {size_t(3), size_t(0)}) {
      const uint64_t own = seed++;
      if (bytes > side.device().maxMessageBytes) continue;
      std::byte* const data = memory.data() + shift;
      std::fill_n(memory.data(), bytes + 8, std::byte{0xee});
      const net::Buffer buffer{data, bytes + 4, int(seed), memory.registration()};
      const size_t size = receiveOne(side, *receiver, buffer);
      if (side.traits().reportsSizes) EXPECT_MORE(size == bytes, std::to_string(size) + " of " + std::to_string(bytes));
      EXPECT_MORE(hasPattern(data, bytes, own), std::to_string(bytes) + " bytes");
      EXPECT(data[bytes] == std::byte{0xee});
    }
  }
  EXPECT(side.meet());
}

constexpr std::array<size_t, 1> kGibibyte = {size_t(1) << 30};

// Twice of each, so that a backend whose places for receives come round after 256 has small buffers where it had large.
constexpr auto kFalling = [] {
  std::array<size_t, 280> sizes = {};
  for (size_t i = 0; i < sizes.size(); i++) sizes[i] = i < sizes.size() / 2 ? 9'000 : 16;
  return sizes;
}();

// As many requests as the backend takes are under way before the first is tested.
constexpr size_t kOutstandingBytes = 1'003;

void sendOutstanding(Side& side) {
  auto sender = side.connect();
  const uint32_t count = side.traits().outstanding;
  RegisteredMemory memory(*sender, count * kOutstandingBytes);
  side.registration = memory.registration();
  fillPattern(memory.data(), count * kOutstandingBytes, 5);
  for (int round = 0; round < 3; round++) {
    std::vector<net::Request*> requests(count);
    for (uint32_t i = 0; i < count; i++) {
      const std::byte* const data = memory.data() + i * kOutstandingBytes;
      const Status status = sender->isend(data, kOutstandingBytes, 0, memory.registration(), requests[i]);
      EXPECT_MORE(status.ok(), status.sentence);
      if (!status.ok()) return;
      if (requests[i] == nullptr) side.send(*sender, data, kOutstandingBytes, 0, requests[i]);
    }
    for (net::Request* request : requests) EXPECT(side.wait(*sender, request, {}).ok());
    EXPECT(side.meet());
  }
}

void receiveOutstanding(Side& side) {
  auto receiver = side.listenAndAccept();
  const uint32_t count = side.traits().outstanding;
  RegisteredMemory memory(*receiver, count * kOutstandingBytes);
  for (int round = 0; round < 3; round++) {
    std::fill_n(memory.data(), count * kOutstandingBytes, std::byte{0});
    std::vector<net::Request*> requests(count);
    for (uint32_t i = 0; i < count; i++) {
      std::byte* const data = memory.data() + i * kOutstandingBytes;
      const net::Buffer buffer{data, kOutstandingBytes, 0, memory.registration()};
      const Status status = side.receive(*receiver, {&buffer, 1}, requests[i]);
      EXPECT_MORE(status.ok(), status.sentence);
      if (!status.ok()) return;
    }
    for (net::Request* request : requests) {
      const Status status = side.wait(*receiver, request, {});
      EXPECT_MORE(status.ok(), status.sentence);
      if (!status.ok()) return;
    }
    EXPECT(hasPattern(memory.data(), count * kOutstandingBytes, 5));
    EXPECT(side.meet());
  }
}

// Small and large messages follow each other without a pause: none overtakes another.
constexpr uint32_t kStreamed = 400;
size_t streamedBytes(uint32_t i) { return i % 7 == 0 ? 300'000 + i : i % 3 * 1'000 + i; }
constexpr size_t kStreamDepth = 8;

void sendStream(Side& side) {
  auto sender = side.connect();
  RegisteredMemory memory(*sender, 310'000 * kStreamDepth);
  std::deque<net::Request*> open;
  for (uint32_t i = 0; i < kStreamed; i++) {
    if (open.size() == kStreamDepth) {
      EXPECT(side.wait(*sender, open.front(), {}).ok());
      open.pop_front();
    }
    std::byte* const data = memory.data() + i % kStreamDepth * 310'000;
    fillPattern(data, streamedBytes(i), i);
    side.registration = memory.registration();
    EXPECT(side.send(*sender, data, streamedBytes(i), 1, open.emplace_back()).ok());
  }
  for (net::Request* request : open) EXPECT(side.wait(*sender, request, {}).ok());
  EXPECT(side.meet());
}

void receiveStream(Side& side) {
  auto receiver = side.listenAndAccept();
  RegisteredMemory memory(*receiver, 310'000 * kStreamDepth);
  std::deque<net::Request*> open;
  uint32_t tested = 0;
  const auto takeOne = [&] {
    EXPECT(side.wait(*receiver, open.front(), {}).ok());
    open.pop_front();
    EXPECT(hasPattern(memory.data() + tested % kStreamDepth * 310'000, streamedBytes(tested), tested));
    tested++;
  };
  for (uint32_t i = 0; i < kStreamed; i++) {
    if (open.size() == kStreamDepth) takeOne();
    const net::Buffer buffer{memory.data() + i % kStreamDepth * 310'000, 310'000, 1, memory.registration()};
    EXPECT(side.receive(*receiver, {&buffer, 1}, open.emplace_back()).ok());
  }
  while (!open.empty()) takeOne();
  EXPECT(side.meet());
}

// Groups of receives: tags in another order than the messages, and one size each.
constexpr uint32_t kGroups = 20;
constexpr size_t kGroupBytes = 100'000;
uint32_t groupSize(const Side&, const net::Device& device) { return std::min(device.maxReceives, 8u); }

void sendGroups(Side& side) {
  auto sender = side.connect();
  const uint32_t n = groupSize(side, side.device());
  RegisteredMemory memory(*sender, n * kGroupBytes);
  side.registration = memory.registration();
  for (uint32_t group = 0; group < kGroups; group++) {
    std::vector<net::Request*> requests(n);
    for (uint32_t i = 0; i < n; i++) {
      const uint32_t tag = (i * 5 + group) % n;  // n is at most 8, or 5 and n share no factor
      std::byte* const data = memory.data() + i * kGroupBytes;
      const size_t bytes = kGroupBytes - 17 * tag - group;
      fillPattern(data, bytes, group * 8 + tag);
      EXPECT(side.send(*sender, data, bytes, int(tag), requests[i]).ok());
    }
    for (net::Request* request : requests) EXPECT(side.wait(*sender, request, {}).ok());
  }
  EXPECT(side.meet());
}

void receiveGroups(Side& side) {
  auto receiver = side.listenAndAccept();
  const uint32_t n = groupSize(side, side.device());
  RegisteredMemory memory(*receiver, n * kGroupBytes);
  for (uint32_t group = 0; group < kGroups; group++) {
    std::vector<net::Buffer> buffers(n);
    for (uint32_t i = 0; i < n; i++) {
      buffers[i] = {memory.data() + i * kGroupBytes, kGroupBytes, int(i), memory.registration()};
    }
    net::Request* request = nullptr;
    EXPECT(side.receive(*receiver, buffers, request).ok());
    std::vector<size_t> sizes(n);
    EXPECT(side.wait(*receiver, request, sizes).ok());
    for (uint32_t tag = 0; tag < n; tag++) {
      const size_t bytes = kGroupBytes - 17 * tag - group;
      if (side.traits().reportsSizes) EXPECT(sizes[tag] == bytes);
      EXPECT(hasPattern(memory.data() + tag * kGroupBytes, bytes, group * 8 + tag));
    }
  }
  EXPECT(side.meet());
}

void sendTooMuch(Side& side) {
  auto sender = side.connect();
  RegisteredMemory memory(*sender, 1'000);
  net::Request* request = nullptr;
  side.registration = memory.registration();
  side.send(*sender, memory.data(), 1'000, 0, request);
  EXPECT(side.meet());
}

void receiveTooMuch(Side& side) {
  auto receiver = side.listenAndAccept();
  RegisteredMemory memory(*receiver, 1'000);
  const net::Buffer buffer{memory.data(), 999, 0, memory.registration()};
  net::Request* request = nullptr;
  EXPECT(side.receive(*receiver, {&buffer, 1}, request).ok());
  const Status status = side.wait(*receiver, request, {});
  EXPECT_MORE(!status.ok() && status.code != ncclInProgress, status.sentence);
  EXPECT(side.meet());
}

constexpr size_t kHead = 64;
constexpr size_t kPieces[] = {1, 4'000, 5'000, 300'000, 3 * kMiB + 1};

// Messages in two places on both sides; `meet` where a receive is redirected before its message is sent.
void sendPieces(Side& side) {
  auto sender = side.connect();
  uint64_t seed = 0;
  for (const size_t bytes : side.network().carriesPieces() ? std::span(kPieces) : std::span<const size_t>()) {
    std::vector<std::byte> head(kHead), body(bytes);
    fillPattern(head.data(), kHead, seed++);
    fillPattern(body.data(), bytes, seed++);
    EXPECT(side.meet());
    net::Request* request = nullptr;
    EXPECT(sender->isendPieces({head.data(), kHead, body.data(), bytes}, 0, request).ok() && request != nullptr);
    EXPECT(side.wait(*sender, request, {}).ok());
  }
  EXPECT(side.meet());
}

void receivePieces(Side& side) {
  auto receiver = side.listenAndAccept();
  uint64_t seed = 0;
  for (const size_t bytes : side.network().carriesPieces() ? std::span(kPieces) : std::span<const size_t>()) {
    std::vector<std::byte> whole(kHead + bytes), body(bytes);
    const net::Scatter scatter{.body = body.data(), .headBytes = kHead, .bodyBytes = bytes};
    const net::Buffer buffer{.address = whole.data(), .bytes = whole.size()};
    net::Request* request = nullptr;
    EXPECT(side.receive(*receiver, {&buffer, 1}, request).ok());
    EXPECT(receiver->redirect(request, scatter));
    EXPECT(side.meet());
    EXPECT(side.wait(*receiver, request, {}).ok());
    EXPECT(hasPattern(whole.data(), kHead, seed) && hasPattern(body.data(), bytes, seed + 1));
    seed += 2;
  }
  EXPECT(side.meet());
}

}  // namespace

std::vector<Scenario> transferScenarios() {
  return {
      {"messages of all sizes arrive, aligned or not", [](Side& side) { sendSizes(side, kSizes); },
       [](Side& side) { receiveSizes(side, kSizes); }},
      {"small messages arrive in small buffers after large ones", [](Side& side) { sendSizes(side, kFalling); },
       [](Side& side) { receiveSizes(side, kFalling); }},
      {"a message of 1 GiB arrives", [](Side& side) { sendSizes(side, kGibibyte); },
       [](Side& side) { receiveSizes(side, kGibibyte); }, false, true},
      {"every message arrives with many requests under way at once", sendOutstanding, receiveOutstanding},
      {"small and large messages keep their order", sendStream, receiveStream},
      {"each message of a group of receives arrives in the buffer of its tag", sendGroups, receiveGroups},
      {"a message lies in two places on either side", sendPieces, receivePieces},
      {"the receive fails when the message is larger than its buffer", sendTooMuch, receiveTooMuch, false, false,
       [](const BackendTraits& traits) { return traits.refusesTruncation; }},
  };
}

}  // namespace ncclrun::test
