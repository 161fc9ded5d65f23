// What NCCL's variables ask of queue pairs, as the stand-in for libibverbs gets it; and how messages are announced
// where packets take several ways through the network.
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "net/verbs_pair.h"
#include "verbs/client/stand_in.h"

using namespace ncclrun;

namespace {

using stand_in_verbs::Configured;

constexpr const char* kEthernet = "device=sa pkeys=4 device=sb pkeys=4";
constexpr const char* kInfiniBand = "device=sa link=ib device=sb link=ib";

std::unique_ptr<net::VerbsNetwork> open(const char* card, bool isEthernet) {
  const std::string gid = std::string(card) == "sa" ? "::ffff:10.8.0.1" : "::ffff:10.8.0.2";
  net::VerbsConfig config{.ports = {{.card = card, .port = 1, .gid = isEthernet ? gid : ""}},
                          .address = "127.0.0.1",
                          .token = {7},
                          .tuning = net::verbsTuningOfVariables()};
  return test::openVerbs(std::move(config));
}

// Messages go from sa to sb.
struct Pair : test::VerbsPair {
  explicit Pair(bool isEthernet = true) : VerbsPair(open("sa", isEthernet), open("sb", isEthernet)) {}
};

struct Variables {
  std::vector<const char*> names;
  explicit Variables(std::initializer_list<std::pair<const char*, const char*>> all) {
    for (const auto& [name, value] : all) {
      setenv(name, value, 1);
      names.push_back(name);
    }
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const char* const name : names) unsetenv(name);
  }
};

void expectSettings(const char* card, const std::string& expected) {
  EXPECT_MORE(stand_in_verbs::settings(card) == expected, std::string(card) + ": " + stand_in_verbs::settings(card));
}

void queuePairsGetWhatTheVariablesSay() {
  const Configured configured(kEthernet);
  {
    const Pair pair;
    expectSettings("sa", "pkey=0 sl=0 tc=0 timeout=17 retries=6\n");
    expectSettings("sb", "pkey=0 sl=0 tc=0 timeout=17 retries=6\n");
  }
  const Variables variables{{"NCCL_IB_PKEY", "2"},
                            {"NCCL_IB_SL", "3"},
                            {"NCCL_IB_TC", "106"},
                            {"NCCL_IB_TIMEOUT", "14"},
                            {"NCCL_IB_RETRY_CNT", "5"}};
  {
    const Pair pair;
    expectSettings("sa", "pkey=2 sl=3 tc=106 timeout=14 retries=5\n");
    expectSettings("sb", "pkey=2 sl=3 tc=106 timeout=14 retries=5\n");
  }
  const Variables fifo{{"NCCL_IB_FIFO_TC", "84"}, {"NCCL_IB_QPS_PER_CONNECTION", "2"}};
  const Pair pair;
  const std::string messages = "pkey=2 sl=3 tc=106 timeout=14 retries=5\n";
  const std::string advertisements = "pkey=2 sl=3 tc=84 timeout=14 retries=5\n";
  expectSettings("sa", messages + messages);
  expectSettings("sb", advertisements + advertisements);
}

void aPartitionThatThePortDoesNotHaveIsAnError() {
  const Configured configured(kEthernet);
  const Variables variables{{"NCCL_IB_PKEY", "9"}};
  const std::unique_ptr<net::VerbsNetwork> here = open("sa", true), there = open("sb", true);
  std::unique_ptr<net::Listener> listener;
  std::unique_ptr<net::Connector> connector;
  std::unique_ptr<net::Sender> sender;
  net::Handle handle = {};
  OK(there->listen(0, handle, listener));
  OK(here->connect(0, handle, connector));
  std::unique_ptr<net::Receiver> receiver;
  Status status;
  while (status.ok() && sender == nullptr) {
    if (receiver == nullptr) OK(listener->accept(receiver));
    status = connector->connect(sender);
  }
  EXPECT_MORE(
      status.sentence.find("a queue pair of sa port 1: to the state INIT: Invalid argument") != std::string::npos,
      status.sentence);
}

// Sends a message of so many bytes. Returns how many writes of its data had an immediate of their own.
long announcedWith(Pair& pair, size_t bytes) {
  std::vector<std::byte> from(bytes, std::byte(0x5a)), to(bytes);
  net::Registration own, other;
  OK(pair.sender->registerMemory({.address = from.data(), .bytes = bytes}, own));
  OK(pair.receiver->registerMemory({.address = to.data(), .bytes = bytes}, other));
  net::Request *receive = nullptr, *send = nullptr;
  const net::Buffer buffer{to.data(), bytes, 0, other};
  OK(pair.receiver->irecv({&buffer, 1}, receive));
  const long before = stand_in_verbs::count("announced");
  while (send == nullptr) OK(pair.sender->isend(from.data(), bytes, 0, own, send));
  bool isSent = false, isReceived = false;
  size_t received = 0;
  while (!isSent) OK(pair.sender->test(send, isSent, {}));
  while (!isReceived) OK(pair.receiver->test(receive, isReceived, {&received, 1}));
  EXPECT(received == bytes && from == to);
  return stand_in_verbs::count("announced") - before;
}

void largeMessagesAreAnnouncedApartWherePacketsAreRoutedAdaptively() {
  constexpr size_t kLarge = 8193, kSmall = 8192;
  {
    const Configured configured(kEthernet);
    Pair pair;
    EXPECT(announcedWith(pair, kLarge) == 1 && announcedWith(pair, kSmall) == 1);
  }
  {
    const Configured configured(kInfiniBand);
    Pair pair(false);
    EXPECT(announcedWith(pair, kLarge) == 0 && announcedWith(pair, kSmall) == 1);
  }
  {
    const Configured configured(kInfiniBand);
    const Variables variables{{"NCCL_IB_ADAPTIVE_ROUTING", "0"}};
    Pair pair(false);
    EXPECT(announcedWith(pair, kLarge) == 1);
  }
  const Configured configured(kEthernet);
  const Variables variables{{"NCCL_IB_ADAPTIVE_ROUTING", "1"}, {"NCCL_IB_AR_THRESHOLD", "100"}};
  Pair pair;
  EXPECT(announcedWith(pair, 101) == 0 && announcedWith(pair, 100) == 1);
}

}  // namespace

int main(int argc, char** argv) {
  setenv("NCCL_IBVERBS_LIB", NCCLRUN_TEST_VERBS, 1);
  const std::array<std::pair<const char*, void (*)()>, 3> tests = {{
      {"queue pairs get what the variables say", queuePairsGetWhatTheVariablesSay},
      {"a partition that the port does not have is an error", aPartitionThatThePortDoesNotHaveIsAnError},
      {"large messages are announced apart where packets are routed adaptively",
       largeMessagesAreAnnouncedApartWherePacketsAreRoutedAdaptively},
  }};
  for (const auto& [name, run] : tests) test::cases().push_back({name, run});
  return test::runAll(argc, argv);
}
