// The stand-in for libibverbs between processes: sockets in a directory that they share, the file `control`, and
// processes that end.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "support/check.h"
#include "verbs/client/client.h"

using namespace stand_in_verbs;

namespace {

constexpr size_t kBytes = 4u << 20;
constexpr uint32_t kSmall = 64;

std::string directory;

void sendTo(int channel, const void* data, size_t bytes) { EXPECT(send(channel, data, bytes, MSG_NOSIGNAL) > 0); }
void receiveFrom(int channel, void* data, size_t bytes) {
  if (recv(channel, data, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes)) return;
  std::fprintf(stderr, "the other process has ended\n");
  std::_Exit(1);
}

// One side of a connection to an end of another process.
struct Side {
  Side(const Library& library, const char* device, int channel, const Terms& terms)
      : channel(channel), own(library, device, kBytes) {
    own.makePair(terms);
    const Peer self = own.self();
    sendTo(channel, &self, sizeof self);
    receiveFrom(channel, &peer, sizeof peer);
    EXPECT(own.connect(peer, terms) == 0);
    meet();
  }
  void meet() const {
    char byte = 0;
    sendTo(channel, &byte, 1);
    receiveFrom(channel, &byte, 1);
  }
  bool send(int opcode, uint32_t bytes) { return own.post(opcode, peer, bytes) == 0 && own.status() == 0; }
  int channel;
  End own;
  Peer peer = {};
};

using Part = void (*)(Side&);

void runPart(Part part, const char* device, int channel, const Terms& terms) {
  alarm(120);
  const int before = ncclrun::test::failures();
  {
    const Library library = openLibrary(NCCLRUN_TEST_VERBS);
    Side side(library, device, channel, terms);
    part(side);
  }
  std::_Exit(ncclrun::test::failures() == before ? 0 : 1);
}

// Runs both parts, each in a process with its own copy of the library. Returns their wait statuses.
std::pair<int, int> run(Part one, Part other, const Terms& terms = {.timeout = 18, .retries = 7}) {
  int channel[2];
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == 0);
  pid_t processes[2];
  for (const int side : {0, 1}) {
    processes[side] = fork();
    if (processes[side] != 0) continue;
    close(channel[1 - side]);
    setenv("STAND_IN_VERBS_NAME", side == 0 ? "one" : "other", 1);
    runPart(side == 0 ? one : other, side == 0 ? "sia" : "sib", channel[side], terms);
  }
  close(channel[0]);
  close(channel[1]);
  std::pair<int, int> statuses;
  waitpid(processes[0], &statuses.first, 0);
  waitpid(processes[1], &statuses.second, 0);
  return statuses;
}

constexpr std::pair<int, int> kBothFine = {0, 0};

void fill(Side& side, uint32_t bytes, uint8_t value) { std::memset(side.own.data.data(), value, bytes); }

void control(const std::string& line) { std::ofstream(directory + "/control", std::ios::app) << line << "\n"; }

}  // namespace

TEST(messages_of_all_sizes_arrive) {
  const auto sender = [](Side& side) {
    uint8_t value = 0;
    for (const uint32_t bytes : {0u, 1u, 64u, 5000u, 300000u, static_cast<uint32_t>(kBytes)}) {
      fill(side, bytes, ++value);
      EXPECT(side.send(kWriteImmediate, bytes));
      side.meet();
    }
    fill(side, kSmall, 200);
    EXPECT(side.send(kSend, kSmall));
    EXPECT(side.send(kRead, kBytes));
    EXPECT(std::all_of(side.own.data.begin(), side.own.data.end(), [](uint8_t byte) { return byte == 200; }));
    side.meet();
  };
  const auto receiver = [](Side& side) {
    uint8_t value = 0;
    for (const uint32_t bytes : {0u, 1u, 64u, 5000u, 300000u, static_cast<uint32_t>(kBytes)}) {
      Completion completion;
      EXPECT(side.own.want() == 0 && side.own.await(completion) && completion.status == 0);
      EXPECT(completion.opcode == kReceivedImmediate && completion.bytes == bytes && completion.immediate == 42);
      ++value;
      EXPECT(std::count(side.own.data.begin(), side.own.data.begin() + bytes, value) == bytes);
      if (bytes == kBytes) fill(side, kBytes, 200);
      side.meet();
    }
    EXPECT(side.own.want(kSmall) == 0 && side.own.status() == 0);
    side.meet();
  };
  EXPECT(run(sender, receiver) == kBothFine);
}

TEST(many_large_writes_are_in_flight_at_once_in_both_directions) {
  const auto both = [](Side& side) {
    constexpr int kWrites = 64;
    for (int index = 0; index < kWrites; ++index) EXPECT(side.own.want() == 0);
    side.meet();
    for (int index = 0; index < kWrites; ++index) EXPECT(side.own.post(kWriteImmediate, side.peer, kBytes / 4) == 0);
    for (int index = 0; index < 2 * kWrites; ++index) EXPECT(side.own.status() == 0);
    side.meet();
  };
  EXPECT(run(both, both) == kBothFine);
}

TEST(a_sender_waits_for_receives_of_another_process) {
  const auto sender = [](Side& side) {
    EXPECT(side.own.post(kWriteImmediate, side.peer, kSmall) == 0 && side.own.status(20) == -1);
    side.meet();
    EXPECT(side.own.status() == 0);
    side.meet();
  };
  const auto receiver = [](Side& side) {
    side.meet();
    EXPECT(side.own.want() == 0 && side.own.status() == 0);
    side.meet();
  };
  EXPECT(run(sender, receiver) == kBothFine);
}

TEST(wrong_keys_break_both_processes_pairs) {
  const auto sender = [](Side& side) {
    side.peer.key ^= 2;
    EXPECT(side.own.post(kWrite, side.peer, kSmall) == 0 && side.own.status() == kRemoteAccess);
    side.meet();
  };
  const auto receiver = [](Side& side) {
    EXPECT(side.own.want() == 0 && side.own.status() == kFlushed && side.own.state() == kError);
    side.meet();
  };
  EXPECT(run(sender, receiver) == kBothFine);
}

TEST(a_killed_process_is_a_peer_that_is_gone) {
  const auto sender = [](Side& side) {
    char byte = 0;
    EXPECT(recv(side.channel, &byte, 1, 0) == 0);  // it is dead
    EXPECT(side.own.post(kWrite, side.peer, kSmall) == 0 && side.own.post(kWrite, side.peer, kBytes) == 0);
    EXPECT(side.own.status() == kRetryExceeded && side.own.status() == kFlushed);
  };
  const auto victim = [](Side&) { raise(SIGKILL); };
  const std::pair<int, int> statuses = run(sender, victim, {.timeout = 12, .retries = 2});
  EXPECT(statuses.first == 0 && WIFSIGNALED(statuses.second));
}

TEST(a_process_killed_amid_large_writes_ends_them) {
  const auto sender = [](Side& side) {
    side.meet();
    EXPECT(side.own.post(kWriteImmediate, side.peer, kBytes) == 0);
    for (int index = 0; index < 31; ++index) EXPECT(side.own.post(kWrite, side.peer, kBytes) == 0);
    Completion completion = {};
    while (completion.status == kSuccess && side.own.await(completion)) continue;
    EXPECT(completion.status == kRetryExceeded && side.own.state() == kError);
  };
  const auto victim = [](Side& side) {
    EXPECT(side.own.want() == 0);
    side.meet();
    EXPECT(side.own.status() == 0);
    raise(SIGKILL);
  };
  EXPECT(run(sender, victim, {.timeout = 17, .retries = 3}).first == 0);
}

TEST(a_stopped_process_answers_nothing) {
  const auto sender = [](Side& side) {
    pid_t peer = 0;
    receiveFrom(side.channel, &peer, sizeof peer);
    EXPECT(kill(peer, SIGSTOP) == 0);
    for (int index = 0; index < 16; ++index) EXPECT(side.own.post(kWrite, side.peer, kBytes) == 0);
    Completion completion = {};
    while (completion.status == kSuccess && side.own.await(completion)) continue;
    EXPECT(completion.status == kRetryExceeded);
    EXPECT(kill(peer, SIGCONT) == 0);
    side.meet();
  };
  const auto stopped = [](Side& side) {
    const pid_t self = getpid();
    sendTo(side.channel, &self, sizeof self);
    side.meet();
  };
  EXPECT(run(sender, stopped, {.timeout = 12, .retries = 2}) == kBothFine);
}

TEST(lines_of_control_reach_the_processes_that_they_name) {
  const auto sender = [](Side& side) {
    control("@other port=down device=sib");
    EXPECT(side.own.event(0) == -1);
    side.meet();
    EXPECT(side.own.post(kWrite, side.peer, kSmall) == 0 && side.own.status(20) == -1);
    control("port=up");
    EXPECT(side.own.status() == 0);
    side.meet();
  };
  const auto receiver = [](Side& side) {
    EXPECT(side.own.event(20000) == kPortError);
    side.meet();
    EXPECT(side.own.event(20000) == kPortActive);
    side.meet();
  };
  EXPECT(run(sender, receiver, {.timeout = 16, .retries = 7}) == kBothFine);
}

TEST(lost_messages_are_sent_to_the_other_process_again) {
  control("drop=0.05");
  const auto both = [](Side& side) {
    for (int index = 0; index < 50; ++index) EXPECT(side.own.want() == 0);
    side.meet();
    for (int index = 0; index < 50; ++index) EXPECT(side.own.post(kWriteImmediate, side.peer, kSmall) == 0);
    for (int index = 0; index < 100; ++index) EXPECT(side.own.status() == 0);
    side.meet();
  };
  EXPECT(run(both, both, {.timeout = 16, .retries = 7}) == kBothFine);
  control("drop=0");
}

int main(int argc, char** argv) {
  std::string pattern = std::filesystem::temp_directory_path() / "stand-in-verbs-XXXXXX";
  directory = mkdtemp(pattern.data());
  setenv("STAND_IN_VERBS_DIR", directory.c_str(), 1);
  const int status = ncclrun::test::runAll(argc, argv);
  std::filesystem::remove_all(directory);
  return status;
}
