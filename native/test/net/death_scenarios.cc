// The other side's process is killed at every step: whoever needs it has an error within seconds, and nothing hangs.
#include <csignal>

#include "net/scenarios.h"
#include "net/side.h"

namespace ncclrun::test {
namespace {

constexpr size_t kBytes = 64u << 20;  // more than the system keeps on its way

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  std::abort();
}

// What a backend reports of a peer that is gone.
void expectLoss(const Status& status) {
  EXPECT_MORE(status.code == ncclRemoteError || status.code == ncclSystemError,
              std::to_string(status.code) + " " + status.sentence);
  EXPECT(!status.sentence.empty());
}

size_t large(Side& side) { return std::min<size_t>(kBytes, side.device().maxMessageBytes); }

// --- the receiving side dies

void connectToNobody(Side& side) {
  auto connector = side.connector();
  char mark = 0;
  EXPECT(!side.hear(mark));  // it is gone
  Status status;
  std::unique_ptr<net::Sender> sender;
  const bool ended = side.until(
      [&] {
        status = connector->connect(sender);
        return sender != nullptr || !status.ok();
      },
      8);
  // A backend may go on trying, but must not block; most learn it from a refused connection.
  if (ended && sender == nullptr) expectLoss(status);
}
void dieListening(Side& side) {
  auto listener = side.listen();
  die();
}

void sendToTheDead(Side& side) {
  auto sender = side.connect();
  RegisteredMemory memory(*sender, large(side));
  side.registration = memory.registration();
  char mark = 0;
  side.hear(mark);  // it is gone, or about to be
  Status status;
  for (int i = 0; i < 8 && status.ok(); i++) {
    net::Request* request = nullptr;
    status = side.send(*sender, memory.data(), large(side), 0, request);
    if (status.ok()) status = side.wait(*sender, request, {}, 10);
  }
  expectLoss(status);
}
void dieAccepted(Side& side) {
  auto receiver = side.listenAndAccept();
  die();
}
void dieReceivePosted(Side& side) {
  auto receiver = side.listenAndAccept();
  RegisteredMemory memory(*receiver, large(side));
  const net::Buffer buffer{memory.data(), large(side), 0, memory.registration()};
  net::Request* request = nullptr;
  side.receive(*receiver, {&buffer, 1}, request);
  die();
}
// Reads what a helper may be writing, which ThreadSanitizer would report.
__attribute__((noinline, no_sanitize("thread"))) bool isZero(const volatile std::byte& byte) {
  return byte == std::byte{0};
}

void dieReceiving(Side& side) {
  auto receiver = side.listenAndAccept();
  RegisteredMemory memory(*receiver, large(side));
  memory.data()[0] = std::byte{0};
  const net::Buffer buffer{memory.data(), large(side), 0, memory.registration()};
  net::Request* request = nullptr;
  side.receive(*receiver, {&buffer, 1}, request);
  side.tell('m');
  bool done = false;
  // The pattern's first byte is not 0: some of the message has come, which is no event.
  while (isZero(memory.data()[0]) && !done) {
    EXPECT(receiver->test(request, done, {}).ok());
    usleep(20);
  }
  die();
}
void sendHalf(Side& side) {
  auto sender = side.connect();
  RegisteredMemory memory(*sender, large(side));
  fillPattern(memory.data(), large(side), 0);
  memory.data()[0] = std::byte{1};
  side.registration = memory.registration();
  char mark = 0;
  EXPECT(side.hear(mark));
  Status status;
  for (int i = 0; i < 8 && status.ok(); i++) {
    net::Request* request = nullptr;
    status = side.send(*sender, memory.data(), large(side), 0, request);
    if (status.ok()) status = side.wait(*sender, request, {}, 10);
  }
  expectLoss(status);
}

// --- the sending side dies

void acceptNobody(Side& side) {
  auto listener = side.listen();
  char mark = 0;
  EXPECT(!side.hear(mark));
  std::unique_ptr<net::Receiver> receiver;
  // Whatever of the connection had come: accept neither blocks nor fails for good.
  for (int i = 0; i < 200; i++) EXPECT(listener->accept(receiver).ok());
}
void dieConnecting(Side& side) {
  auto connector = side.connector();
  std::unique_ptr<net::Sender> sender;
  (void)connector->connect(sender);
  die();
}

// It reads nothing before the sender is gone: more than the system keeps on its way cannot have been sent. Where a send
// wants a posted receive, the sender says so first.
void receiveFromTheDead(Side& side) {
  auto receiver = side.listenAndAccept();
  RegisteredMemory memory(*receiver, large(side));
  const net::Buffer buffer{memory.data(), large(side), 0, memory.registration()};
  net::Request* request = nullptr;
  Status status;
  char mark = 0;
  if (side.hear(mark)) {
    status = side.receive(*receiver, {&buffer, 1}, request);
    side.tell('p');
    EXPECT(!side.hear(mark));
  }
  // A fast backend may have brought the first message whole.
  for (int i = 0; i < 2 && status.ok(); i++) {
    if (request == nullptr) status = side.receive(*receiver, {&buffer, 1}, request);
    if (status.ok()) status = side.wait(*receiver, request, {}, 10);
    request = nullptr;
  }
  expectLoss(status);
}
void dieConnected(Side& side) {
  auto sender = side.connect();
  die();
}
void dieSending(Side& side) {
  auto sender = side.connect();
  RegisteredMemory memory(*sender, large(side));
  net::Request* request = nullptr;
  side.registration = memory.registration();
  (void)sender->isend(memory.data(), large(side), 0, memory.registration(), request);
  if (request == nullptr) {
    char mark = 0;
    side.tell('n');
    EXPECT(side.hear(mark));
    (void)side.send(*sender, memory.data(), large(side), 0, request);
  }
  bool done = false;
  if (request != nullptr) (void)sender->test(request, done, {});
  die();
}

}  // namespace

std::vector<Scenario> exitScenarios() {
  std::vector<Scenario> all = {
      {"connect does not block when the receiving side is killed while it listens", connectToNobody, dieListening},
      {"a send fails when the receiving side is killed after it has accepted", sendToTheDead, dieAccepted},
      {"a send fails when the receiving side is killed with a receive posted", sendToTheDead, dieReceivePosted},
      {"a send fails when the receiving side is killed in the middle of a message", sendHalf, dieReceiving},
      {"accept neither blocks nor fails when the sender is killed while it connects", dieConnecting, acceptNobody},
      {"a receive fails when the sending side is killed after it has connected", dieConnected, receiveFromTheDead},
      {"a receive fails when the sending side is killed in the middle of a message", dieSending, receiveFromTheDead},
  };
  for (Scenario& one : all) {
    one.kills = true;
    one.concerns = [](const BackendTraits& traits) { return traits.detectsExit; };
  }
  return all;
}

}  // namespace ncclrun::test
