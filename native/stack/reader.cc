#include "stack/reader.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "base/frame.h"
#include "stack/modules.h"
#include "stack/process_copy.h"
#include "stack/protocol.h"
#include "stack/python_stacks.h"
#include "stack/report.h"
#include "stack/symbolise.h"
#include "stack/unwind.h"

namespace ncclrun::stack {
namespace {

// Damaged files must not take the host's memory.
[[maybe_unused]] constexpr rlim_t kMaxMemoryBytes = rlim_t{2} << 30;

// Returns the number of bytes, and the descriptor that came with them.
ssize_t receive(int socket, Packet& packet, int& descriptor) {
  iovec part = {&packet, sizeof packet};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return got;
}

class Reader {
 public:
  Reader(int tracer, int output, unsigned request) : tracer_(tracer), output_(output), request_(request) {}

  void run() {
    for (;;) {
      Packet packet;
      int descriptor = -1;
      if (receive(tracer_, packet, descriptor) <= 0) return;
      if (descriptor >= 0) {
        modules_.forgetMemory();  // of the process before
        memory_ = std::make_unique<FileSource>(descriptor);
      }
      switch (packet.request) {
        case Request::prepare:
          if (memory_ != nullptr) python_ = findPython(packet.process, readMaps(packet.process), *memory_, modules_);
          answer();
          break;
        case Request::threads:
          if (memory_ != nullptr) report(packet);
          memory_.reset();
          break;
        case Request::problem:
          refuse(packet);
          break;
      }
    }
  }

 private:
  void answer() {
    const char byte = 1;
    [[maybe_unused]] const ssize_t sent = ::send(tracer_, &byte, 1, MSG_NOSIGNAL);
  }

  void refuse(const Packet& packet) {
    RankReport report;
    report.rank = packet.rank;
    report.process = packet.process;
    report.problem = packet.problem;
    report.detail = packet.detail;
    write(report);
  }

  void report(const Packet& packet);
  void write(const RankReport& report);
  void writeAll(const void* bytes, size_t size);

  int tracer_;
  int output_;
  unsigned request_;
  std::unique_ptr<FileSource> memory_;
  Modules modules_;
  FoundPython python_;
};

void Reader::report(const Packet& packet) {
  const ProcessCopy copy = copyProcess(packet, *memory_);
  std::vector<std::vector<PythonFrame>> python(packet.threads);
  if (python_.runtime) python = readPythonStacks(*python_.runtime, packet, *memory_);
  answer();  // the process goes on
  RankReport report;
  report.rank = packet.rank;
  report.process = packet.process;
  report.omittedThreads = packet.omitted;
  report.pythonProblem = python_.problem;
  Symboliser symboliser(packet.process, copy.maps, *memory_, modules_);
  const FindCode findCode = [&](uint64_t address) { return symboliser.findCode(address); };
  std::vector<Unwound> stacks(packet.threads);
  for (uint32_t i = 0; i < packet.threads; ++i) {
    if (packet.states[i].isStopped) stacks[i] = unwind(packet.states[i].registers, findCode, copy.stacks);
    for (const CodeAddress& address : stacks[i].frames) symboliser.expect(address);
  }
  symboliser.load();
  for (uint32_t i = 0; i < packet.threads; ++i) {
    const ThreadState& state = packet.states[i];
    ThreadReport thread;
    thread.thread = state.thread;
    thread.state = state.state;
    thread.isStopped = state.isStopped;
    thread.isCut = stacks[i].isCut;
    thread.name = std::string(state.name, strnlen(state.name, sizeof state.name));
    for (const CodeAddress& address : stacks[i].frames) thread.native.push_back(symboliser.frameOf(address));
    thread.python = std::move(python[i]);
    report.threads.push_back(std::move(thread));
  }
  modules_.forgetMemory();
  write(report);
}

void Reader::write(const RankReport& report) {
  const std::vector<char> payload = encodeReport(report);
  const FrameHeader header = {.payloadBytes = static_cast<uint32_t>(payload.size()),
                              .version = kFrameVersion,
                              .kind = static_cast<uint8_t>(FrameKind::readStack),
                              .flags = 0,
                              .subject = report.rank,
                              .request = request_};
  writeAll(&header, sizeof header);
  writeAll(payload.data(), payload.size());
}

void Reader::writeAll(const void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t sent = ::write(output_, static_cast<const char*>(bytes) + done, size - done);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) _exit(1);
    done += static_cast<size_t>(sent);
  }
}

// Ends when its time is up, uses little, and leaves no core file.
void limitSelf(unsigned seconds) {
  prctl(PR_SET_NAME, "ncclrun-stack");
  signal(SIGALRM, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  alarm(seconds);
  const rlimit core = {0, 0};
  setrlimit(RLIMIT_CORE, &core);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit memory = {kMaxMemoryBytes, kMaxMemoryBytes};
  setrlimit(RLIMIT_AS, &memory);
#endif
}

}  // namespace

void runReader(int tracer, int output, unsigned request, unsigned seconds) {
  limitSelf(seconds);
  Reader(tracer, output, request).run();
  _exit(0);
}

}  // namespace ncclrun::stack
