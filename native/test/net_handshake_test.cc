// The socket backend's handshake and frames against strangers, wrong tokens and damage.
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "base/sha256.h"
#include "net/socket/socket_network.h"
#include "net/socket/socket_receiver.h"
#include "support/check.h"

using namespace ncclrun;

namespace {

std::unique_ptr<net::SocketNetwork> open(const net::Token& token) {
  std::unique_ptr<net::SocketNetwork> network;
  const Status status =
      net::SocketNetwork::make({.devices = {{.interface = "lo", .address = "127.0.0.1"}}, .token = token}, network);
  EXPECT_MORE(status.ok(), status.sentence);
  return network;
}

std::string hex(const Sha256Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::span<const uint8_t> bytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Descriptor dial(const net::Handle& handle) {
  const auto where = net::decodeHandle(handle);
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT(where.has_value() && ::connect(socket.get(), where->address.get(), where->address.length) == 0);
  return socket;
}

struct Listening {
  std::unique_ptr<net::SocketNetwork> network = open({7});
  std::unique_ptr<net::Listener> listener;
  net::Handle handle = {};
  std::unique_ptr<net::Receiver> receiver;
  Listening() { EXPECT(network->listen(0, handle, listener).ok()); }
  void poll() {
    if (receiver == nullptr) EXPECT(listener->accept(receiver).ok());
  }
};

// Polls the listener until the stranger's connection has ended; in milliseconds, -1: it has not.
long endOf(Listening& listening, const Descriptor& stranger, long max) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    listening.poll();
    char byte = 0;
    const ssize_t got = recv(stranger.get(), &byte, 1, MSG_DONTWAIT);
    const long passed =
        long(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count());
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return passed;
    if (passed > max) return -1;
    usleep(1'000);
  }
}

Status connectTo(Listening& listening, net::SocketNetwork& network, std::unique_ptr<net::Sender>& sender) {
  std::unique_ptr<net::Connector> connector;
  EXPECT(network.connect(0, listening.handle, connector).ok());
  Status status;
  for (int i = 0; i < 10'000 && status.ok() && (sender == nullptr || listening.receiver == nullptr); i++) {
    if (sender == nullptr) status = connector->connect(sender);
    listening.poll();
    usleep(500);
  }
  return status;
}

}  // namespace

// FIPS 180-4's example, a message of two blocks, and RFC 4231's second case.
TEST(digests_equal_the_examples_of_the_standards) {
  Sha256 one;
  one.update(bytesOf("abc"));
  EXPECT(hex(one.finish()) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 two;
  two.update(bytesOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"));
  EXPECT(hex(two.finish()) == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT(hex(hmacSha256(bytesOf("Jefe"), bytesOf("what do ya want for nothing?"))) ==
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(a_sender_with_another_token_fails_with_authentication_failed) {
  Listening listening;
  auto stranger = open({8});
  std::unique_ptr<net::Sender> sender;
  const Status status = connectTo(listening, *stranger, sender);
  EXPECT(status.code == ncclRemoteError && sender == nullptr && listening.receiver == nullptr);
  EXPECT_MORE(status.sentence.find("authentication failed") != std::string::npos, status.sentence);
}

// It listens where a communicator's engine should, and does not know the token either.
TEST(a_connector_refuses_a_listener_that_does_not_know_the_token) {
  Descriptor impostor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  EXPECT(bind(impostor.get(), reinterpret_cast<sockaddr*>(&at), length) == 0 && listen(impostor.get(), 1) == 0);
  EXPECT(getsockname(impostor.get(), reinterpret_cast<sockaddr*>(&at), &length) == 0);
  net::ListenerAddress where{.address = *net::parseAddress("127.0.0.1"), .listener = 1};
  where.address.setPort(ntohs(at.sin_port));
  std::thread answers([&] {
    Descriptor connection(accept(impostor.get(), nullptr, nullptr));
    net::Hello hello;
    recv(connection.get(), &hello, sizeof hello, MSG_WAITALL);
    const net::Token token = {7};
    EXPECT(memmem(&hello, sizeof hello, token.data(), token.size()) == nullptr);
    const net::Challenge challenge;
    send(connection.get(), &challenge, sizeof challenge, MSG_NOSIGNAL);
    char byte = 0;
    recv(connection.get(), &byte, 1, 0);  // nothing: the engine has left
  });
  auto network = open({7});
  std::unique_ptr<net::Connector> connector;
  EXPECT(network->connect(0, net::encodeHandle(where), connector).ok());
  std::unique_ptr<net::Sender> sender;
  Status status;
  for (int i = 0; i < 10'000 && status.ok(); i++) {
    status = connector->connect(sender);
    usleep(500);
  }
  EXPECT_MORE(status.sentence.find("authentication failed") != std::string::npos, status.sentence);
  connector.reset();
  answers.join();
}

TEST(the_listener_closes_a_silent_connection_after_a_second_and_a_malformed_one_at_once) {
  Listening listening;
  const Descriptor silent = dial(listening.handle);
  const long passed = endOf(listening, silent, 10'000);
  EXPECT_MORE(passed >= 900, std::to_string(passed));
  const Descriptor loud = dial(listening.handle);
  const std::string junk(48, 'x');
  EXPECT(send(loud.get(), junk.data(), junk.size(), 0) == ssize_t(junk.size()));
  EXPECT(endOf(listening, loud, 500) >= 0);
}

// More of them than are looked at at once; who belongs to the communicator gets in all the same.
TEST(the_listener_accepts_its_peer_beside_600_silent_connections) {
  Listening listening;
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 600; i++) strangers.push_back(dial(listening.handle));
  std::unique_ptr<net::Sender> sender;
  const Status status = connectTo(listening, *listening.network, sender);
  EXPECT_MORE(status.ok() && sender != nullptr && listening.receiver != nullptr, status.sentence);
}

// A stranger who has listened to a handshake cannot repeat it: the other side's nonce is another one.
TEST(the_listener_refuses_a_replayed_handshake) {
  Listening listening;
  const auto where = net::decodeHandle(listening.handle);
  net::Hello hello;
  hello.listener = where->listener;
  hello.connection = 1;
  const net::Token token = {7};
  Sha256Digest recorded = {};
  for (const bool replayed : {false, true}) {
    const Descriptor socket = dial(listening.handle);
    EXPECT(send(socket.get(), &hello, sizeof hello, 0) == ssize_t(sizeof hello));
    net::Challenge challenge;
    for (size_t got = 0; got < sizeof challenge;) {
      listening.poll();
      const ssize_t more =
          recv(socket.get(), reinterpret_cast<char*>(&challenge) + got, sizeof challenge - got, MSG_DONTWAIT);
      if (more > 0) got += size_t(more);
    }
    if (!replayed) recorded = net::proofOf(net::ProofOf::connect, token, hello, challenge.nonce);
    EXPECT(send(socket.get(), recorded.data(), recorded.size(), 0) == ssize_t(recorded.size()));
    if (!replayed) {
      while (listening.receiver == nullptr) listening.poll();
      listening.receiver.reset();
    } else {
      EXPECT(endOf(listening, socket, 3'000) >= 0 && listening.receiver == nullptr);
    }
  }
}

// Frames that no sender of ours makes end the connection with a sentence.
TEST(a_malformed_chunk_header_fails_the_receive_and_names_the_peer) {
  const net::ChunkHeader right{
      .magic = net::kChunkMagic, .sequence = 0, .tag = 3, .bytes = 8, .offset = 0, .messageBytes = 16};
  const auto statusFor = [](const net::ChunkHeader& header) {
    auto network = open({7});
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const Descriptor sending(ends[0]);
    std::vector<net::AcceptedSocket> sockets(1);
    sockets[0].descriptor.reset(ends[1]);
    sockets[0].peer = "127.0.0.1 port 1";
    std::unique_ptr<net::SocketReceiver> receiver;
    EXPECT(net::SocketReceiver::make(*network, 0, 0, std::move(sockets), receiver).ok());
    std::array<std::byte, 64> memory = {};
    const net::Buffer buffer{memory.data(), 32, 3, {}};
    net::Request* request = nullptr;
    EXPECT(receiver->irecv({&buffer, 1}, request).ok() && request != nullptr);
    std::array<std::byte, sizeof header + 64> frame = {};
    std::memcpy(frame.data(), &header, sizeof header);
    EXPECT(send(sending.get(), frame.data(), frame.size(), 0) == ssize_t(frame.size()));
    bool done = false;
    const Status status = receiver->test(request, done, {});
    EXPECT(!done);
    for (size_t i = 32; i < memory.size(); i++) EXPECT(memory[i] == std::byte{0});
    return status;
  };
  std::vector<net::ChunkHeader> wrong(7, right);
  wrong[0].magic = 1;
  wrong[1].tag = 4;
  wrong[2].messageBytes = 33;
  wrong[3].offset = 9;
  wrong[4].bytes = 17;
  wrong[5].bytes = 0;
  wrong[6].sequence = uint32_t(-5);
  for (const net::ChunkHeader& header : wrong) {
    const Status status = statusFor(header);
    EXPECT_MORE(!status.ok() && status.sentence.find("127.0.0.1 port 1") != std::string::npos, status.sentence);
  }
}

TEST_MAIN
