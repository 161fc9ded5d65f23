#include "guardian/stack_reading.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "guardian/clock.h"
#include "stack/reader.h"

namespace ncclrun::guardian {
namespace {

constexpr uint32_t kMaxMs = 10000;
constexpr uint32_t kMaxTargets = 4096;
// Of one rank. The reader writes less.
constexpr uint32_t kMaxReportBytes = 8 << 20;
constexpr size_t kReceiveBytes = 64 << 10;
// After the deadline. The reader's alarm ends it before that.
constexpr uint64_t kStuckMs = 1500;

// The reader has no descriptors but its own two.
[[noreturn]] void becomeReader(int socket, int output, uint32_t request, uint32_t milliseconds) {
  const int lower = std::min(socket, output);
  const int upper = std::max(socket, output);
  syscall(SYS_close_range, 3, lower - 1, 0);
  syscall(SYS_close_range, lower + 1, upper - 1, 0);
  syscall(SYS_close_range, upper + 1, ~0u, 0);
  stack::runReader(socket, output, request, (milliseconds + 999) / 1000);
}

}  // namespace

bool parseStackOrder(std::span<const char> payload, uint32_t& milliseconds, std::vector<stack::Target>& targets) {
  uint32_t head[2];
  if (payload.size() < sizeof head) return false;
  memcpy(head, payload.data(), sizeof head);
  if (head[1] > kMaxTargets || payload.size() != sizeof head + head[1] * 2 * sizeof(uint32_t)) return false;
  milliseconds = std::min(head[0], kMaxMs);
  for (uint32_t i = 0; i < head[1]; ++i) {
    uint32_t pair[2];
    memcpy(pair, payload.data() + sizeof head + i * sizeof pair, sizeof pair);
    targets.push_back({.rank = pair[0], .process = static_cast<pid_t>(pair[1])});
  }
  return true;
}

void* StackReading::trace(void* given) {
  const std::unique_ptr<Work> work(static_cast<Work*>(given));
  stack::traceAll(work->targets, work->socket, work->deadlineMs);
  return nullptr;
}

bool StackReading::begin(uint32_t request, uint32_t milliseconds, std::vector<stack::Target> targets,
                         Channel& channel) {
  const bool isBusy = output_ >= 0 && !isStuck();
  if (output_ >= 0 && !isBusy) abandon();
  if (!isBusy) request_ = request;
  if (!isBusy && start(milliseconds, targets)) return true;
  end(request, channel);
  return false;
}

// The reader begins before there is another thread: it may then do what any process may.
bool StackReading::start(uint32_t milliseconds, std::vector<stack::Target>& targets) {
  int sockets[2];
  int pipes[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) return false;
  if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0) {
    close(sockets[0]);
    close(sockets[1]);
    return false;
  }
  fcntl(pipes[1], F_SETFL, 0);  // the reader waits for us
  const pid_t reader = fork();
  if (reader == 0) becomeReader(sockets[1], pipes[1], request_, milliseconds);
  close(sockets[1]);
  close(pipes[1]);
  deadlineMs_ = monotonicMs() + milliseconds;
  std::unique_ptr<Work> work(new Work{std::move(targets), sockets[0], deadlineMs_});
  if (reader < 0 || pthread_create(&thread_, nullptr, trace, work.get()) != 0) {
    close(sockets[0]);
    close(pipes[0]);
    return false;
  }
  [[maybe_unused]] const Work* taken = work.release();
  output_ = pipes[0];
  return true;
}

bool StackReading::isStuck() const { return monotonicMs() > deadlineMs_ + kStuckMs; }

// The thread waits for nobody beyond the deadline; the reader ends when the kernel lets go of it.
void StackReading::abandon() {
  close(output_);
  output_ = -1;
  incoming_.clear();
  pthread_detach(thread_);
}

void StackReading::serve(Channel& channel) {
  for (;;) {
    const ssize_t got = read(output_, incoming_.prepare(kReceiveBytes), kReceiveBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) break;
    incoming_.commit(static_cast<size_t>(got));
    passOn(channel);
  }
  // Closing it ends its part in epoll. The thread ends with the reader.
  close(output_);
  output_ = -1;
  incoming_.clear();
  pthread_join(thread_, nullptr);
  end(request_, channel);
}

void StackReading::passOn(Channel& channel) {
  FrameHeader header;
  while (incoming_.size() >= sizeof header) {
    memcpy(&header, incoming_.data(), sizeof header);
    if (header.payloadBytes > kMaxReportBytes) return incoming_.clear();  // what follows makes no sense either
    if (incoming_.size() - sizeof header < header.payloadBytes) return;
    char* payload = channel.begin(header.payloadBytes);
    memcpy(payload, incoming_.data() + sizeof header, header.payloadBytes);
    channel.finish(FrameKind::readStack, 0, header.subject, request_, header.payloadBytes);
    incoming_.consume(sizeof header + header.payloadBytes);
  }
}

void StackReading::end(uint32_t request, Channel& channel) {
  channel.begin(0);
  channel.finish(FrameKind::readStack, 0, kAllRanks, request, 0);
}

}  // namespace ncclrun::guardian
