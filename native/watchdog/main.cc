// ncclrun-watchdog launched|invited PROGRAM ARGUMENT…: becomes the program, which is to be an agent, and leaves a small
// process beside it. That one ends a program which does not come up, whatever keeps it (a SIGSTOP, a file system that
// does not answer, a loop without an end) and whether or not a launcher is there to notice.
//
// The program has two pipes, named by NCCLRUN_WATCHDOG (worker/agent/watchdog.ts): it takes the one byte out of the
// first before it writes to stdout, and writes to the second, or closes it, once its ranks' guardian watches over it.
// Until the byte is taken the watchdog of a `launched` agent tells the launcher on stdout that the host is alive.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "base/frame.h"
#include "watchdog/progress.h"

namespace {

using ncclrun::watchdog::Progress;
using ncclrun::watchdog::Sample;
using ncclrun::watchdog::Stall;

constexpr int kTokenFd = 3;
constexpr int kDisarmFd = 4;
constexpr uint64_t kTickMs = 500;
constexpr uint64_t kStillMs = 5000;
// Of a whole start an agent needs a thirtieth of that; on a host that is emulated, or gets little of its processors,
// all counts longer.
constexpr uint64_t kProcessorMs = 3000;
// However it gets on.
constexpr uint64_t kTotalMs = 60'000;
// StagingMessage in launcher/remote/staging/protocol.ts
constexpr uint16_t kAlive = 7;
constexpr uint16_t kHung = 8;
// Nobody else sends it, and it leaves no core file: the status tells a shell that it was us
// (launcher/remote/staging/protocol.ts).
constexpr int kEnding = SIGVTALRM;
constexpr int kCannotStart = 125;

struct Watched {
  pid_t pid;
  bool speaks;   // on stdout, as long as the program does not
  int tokenIn;   // both ends of the pipe with the byte
  int tokenOut;  // -1: the program has taken it
  int disarm;
};

uint64_t nowMs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

// Sends a frame, unless the program has taken over stdout, or nobody takes what is written there.
void sendMessage(Watched& watched, uint16_t word) {
  if (watched.tokenOut < 0) return;
  char token = 0;
  if (read(watched.tokenIn, &token, 1) != 1) {
    close(watched.tokenIn);
    close(watched.tokenOut);
    watched.tokenIn = watched.tokenOut = -1;
    return;
  }
  pollfd room = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (watched.speaks && poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0) {
    const ncclrun::FrameHeader frame = {.payloadBytes = 0,
                                        .version = ncclrun::kFrameVersion,
                                        .kind = static_cast<uint8_t>(ncclrun::FrameKind::staging),
                                        .flags = word,
                                        .subject = 0,
                                        .request = 0};
    [[maybe_unused]] const ssize_t wrote = write(STDOUT_FILENO, &frame, sizeof frame);
  }
  [[maybe_unused]] const ssize_t gave = write(watched.tokenOut, &token, 1);
}

// True: the program is up, or has ended.
bool disarmedWithin(const Watched& watched, uint64_t milliseconds) {
  pollfd end = {.fd = watched.disarm, .events = POLLIN, .revents = 0};
  return poll(&end, 1, static_cast<int>(milliseconds)) == 1;
}

const char* describe(Stall stall, char state, char (&text)[96]) {
  const unsigned seconds = kStillMs / 1000;
  switch (stall) {
    case Stall::stopped:
      snprintf(text, sizeof text, "was stopped for %u s (state %c)", seconds, state);
      break;
    case Stall::looping:
      snprintf(text, sizeof text, "used %u s of processor time without reading anything",
               static_cast<unsigned>(kProcessorMs / 1000));
      break;
    case Stall::waiting:
      snprintf(text, sizeof text, "waited for %u s without reading anything (state %c)", seconds, state);
      break;
    case Stall::none:
      snprintf(text, sizeof text, "was not up after %u s", static_cast<unsigned>(kTotalMs / 1000));
      break;
  }
  return text;
}

void endProgram(Watched& watched, Stall stall, char state) {
  char text[96];
  dprintf(STDERR_FILENO, "ncclrun-watchdog: process %d %s, and was ended\n", watched.pid, describe(stall, state, text));
  sendMessage(watched, kHung);
  kill(watched.pid, kEnding);
  kill(watched.pid, SIGCONT);  // one that is stopped dies on its way back
  if (!disarmedWithin(watched, kTickMs)) kill(watched.pid, SIGKILL);
}

[[noreturn]] void watch(Watched watched) {
  Progress progress(kStillMs, kProcessorMs);
  uint64_t total = 0;
  for (uint64_t before = nowMs(); !disarmedWithin(watched, kTickMs);) {
    // A host that stood still, or was too busy to run us, did not run the program either.
    const uint64_t now = nowMs();
    const uint64_t elapsed = now - before < 2 * kTickMs ? kTickMs : 0;
    before = now;
    total += elapsed;
    Sample sample = {};
    if (!ncclrun::watchdog::look(watched.pid, sample)) break;
    const Stall stall = progress.judge(sample, elapsed);
    if (stall != Stall::none || total >= kTotalMs) {
      endProgram(watched, stall, sample.state);
      break;
    }
    if (total % (2 * kTickMs) == 0) sendMessage(watched, kAlive);
  }
  _exit(0);
}

bool makePipe(int (&ends)[2]) { return pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0; }

// To the program, under a number that it knows.
void give(int end, int number) {
  if (dup2(end, number) < 0) perror("ncclrun-watchdog: dup2");
}

// Away from the numbers that the program's ends will have.
int away(int end) {
  const int moved = fcntl(end, F_DUPFD_CLOEXEC, kDisarmFd + 1);
  close(end);
  return moved;
}

// Ours for as long as the program starts; nothing of the program's arguments is to be seen in its name.
void becomeWatchdog(char** argv) {
  for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2}) signal(number, SIG_IGN);
  close(STDIN_FILENO);
  // The pipe by which the program learns of variables (bin/start-node.sh) ends when the program closes it.
  if (const char* kept = getenv("NCCLRUN_KEPT")) close(atoi(kept));
  prctl(PR_SET_NAME, "ncclrun-watchdo");
  for (char** word = argv + 1; *word != nullptr; ++word) memset(*word, 0, strlen(*word));
}

// The watchdog is nobody's child whom the program would have to wait for. False: the host starts no process.
bool startWatchdog(const Watched& watched, int programsDisarm, char** argv) {
  const pid_t between = fork();
  if (between < 0) return false;
  if (between == 0) {
    const pid_t child = fork();
    if (child != 0) _exit(child < 0 ? errno : 0);
    close(programsDisarm);
    becomeWatchdog(argv);
    watch(watched);
  }
  int status = 0;
  while (waitpid(between, &status, 0) < 0 && errno == EINTR) {
  }
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
  return errno == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    dprintf(STDERR_FILENO, "ncclrun-watchdog: this program is started by ncclrun, not by hand\n");
    return kCannotStart;
  }
  int token[2];
  int disarm[2];
  if (!makePipe(token) || !makePipe(disarm)) {
    dprintf(STDERR_FILENO, "ncclrun-watchdog: cannot open a pipe: %s\n", strerror(errno));
    return kCannotStart;
  }
  const int tokenIn = away(token[0]);
  const int tokenOut = away(token[1]);
  const int disarmIn = away(disarm[0]);
  const int disarmOut = away(disarm[1]);
  const char byte = 1;
  if (disarmOut < 0 || write(tokenOut, &byte, 1) != 1) {
    dprintf(STDERR_FILENO, "ncclrun-watchdog: cannot open a pipe: %s\n", strerror(errno));
    return kCannotStart;
  }
  const Watched watched = {.pid = getpid(),
                           .speaks = strcmp(argv[1], "launched") == 0,
                           .tokenIn = tokenIn,
                           .tokenOut = tokenOut,
                           .disarm = disarmIn};
  if (!startWatchdog(watched, disarmOut, argv)) {
    dprintf(STDERR_FILENO, "ncclrun-watchdog: the host starts no more processes: %s\n", strerror(errno));
    return kCannotStart;
  }
  give(tokenIn, kTokenFd);
  give(disarmOut, kDisarmFd);
  setenv("NCCLRUN_WATCHDOG", "3 4", 1);
  execvp(argv[2], argv + 2);
  dprintf(STDERR_FILENO, "ncclrun-watchdog: cannot start %s: %s\n", argv[2], strerror(errno));
  return errno == ENOENT ? 127 : 126;
}
