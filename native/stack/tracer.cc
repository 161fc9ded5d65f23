#include "stack/tracer.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "stack/memory_map.h"

namespace ncclrun::stack {
namespace {

// For threads to stop. A running one does so within microseconds; one that is asleep in the kernel at once.
constexpr uint64_t kStopMs = 250;
// For the reader to copy what a stopped process holds.
constexpr uint64_t kCopyMs = 500;
constexpr size_t kMaxStatusBytes = 8192;
constexpr int kMaxAncestors = 1024;

uint64_t nowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

void pause(long microseconds) {
  const timespec time = {0, microseconds * 1000};
  nanosleep(&time, nullptr);
}

std::string processFile(pid_t process, const char* name) {
  return readText(("/proc/" + std::to_string(process) + "/" + name).c_str(), kMaxStatusBytes);
}

// A number of /proc/PID/status. -1: there is none.
long statusField(const std::string& status, const char* name) {
  const size_t at = status.find("\n" + std::string(name) + ":");
  if (at == std::string::npos) return -1;
  return strtol(status.c_str() + at + strlen(name) + 2, nullptr, 10);
}

bool descendsFromUs(pid_t process) {
  for (int i = 0; i < kMaxAncestors && process > 1; ++i) {
    const std::string status = processFile(process, "status");
    process = static_cast<pid_t>(statusField(status, "PPid"));
    if (process == getpid()) return true;
  }
  return false;
}

// State and name of a thread. False: it has ended.
bool readThread(pid_t process, ThreadState& out) {
  char path[64];
  snprintf(path, sizeof path, "task/%d/stat", out.thread);
  const std::string text = processFile(process, path);
  const size_t begin = text.find('(');
  const size_t end = text.rfind(')');  // the name may hold anything, a parenthesis too
  if (begin == std::string::npos || end == std::string::npos || end + 2 >= text.size()) return false;
  out.state = text[end + 2];
  const size_t length = std::min(end - begin - 1, sizeof out.name - 1);
  memcpy(out.name, text.data() + begin + 1, length);
  return true;
}

// The first thread comes first.
void listThreads(pid_t process, Packet& packet) {
  DIR* directory = opendir(("/proc/" + std::to_string(process) + "/task").c_str());
  if (directory == nullptr) return;
  std::vector<pid_t> threads;
  while (const dirent* entry = readdir(directory)) {
    if (isdigit(static_cast<unsigned char>(entry->d_name[0]))) threads.push_back(atoi(entry->d_name));
  }
  closedir(directory);
  std::sort(threads.begin(), threads.end(), [process](pid_t one, pid_t other) {
    return one == process || other == process ? one == process && other != process : one < other;
  });
  for (const pid_t thread : threads) {
    if (packet.threads == kMaxThreads) {
      ++packet.omitted;
      continue;
    }
    ThreadState& state = packet.states[packet.threads];
    state = ThreadState();
    state.thread = thread;
    if (readThread(process, state)) ++packet.threads;
  }
}

// False while the thread runs.
bool readRegisters(ThreadState& state) {
#if defined(__x86_64__)
  user_regs_struct raw = {};
#else
  user_regs_struct raw = {};
  uint64_t pointer = 0;
  iovec pointerPart = {&pointer, sizeof pointer};
#endif
  iovec part = {&raw, sizeof raw};
  if (ptrace(PTRACE_GETREGSET, state.thread, NT_PRSTATUS, &part) < 0) return false;
#if defined(__x86_64__)
  const uint64_t values[kRegisters] = {raw.rax, raw.rdx, raw.rcx, raw.rbx, raw.rsi, raw.rdi, raw.rbp, raw.rsp, raw.r8,
                                       raw.r9,  raw.r10, raw.r11, raw.r12, raw.r13, raw.r14, raw.r15, raw.rip};
  memcpy(state.registers.value, values, sizeof values);
  state.registers.pc = raw.rip;
  state.threadPointer = raw.fs_base;
#else
  memcpy(state.registers.value, raw.regs, sizeof raw.regs);
  state.registers.value[kStackPointer] = raw.sp;
  state.registers.pc = raw.pc;
  if (ptrace(PTRACE_GETREGSET, state.thread, NT_ARM_TLS, &pointerPart) == 0) state.threadPointer = pointer;
#endif
  state.isStopped = true;
  return true;
}

// False: the thread has not stopped, and cannot be let go. A signal that stopped it first is its own to get.
bool detach(pid_t thread) {
  siginfo_t information = {};
  long signal = 0;
  if (ptrace(PTRACE_GETSIGINFO, thread, 0, &information) == 0 && information.si_code >> 8 != PTRACE_EVENT_STOP)
    signal = information.si_signo;
  return ptrace(PTRACE_DETACH, thread, 0, signal) == 0;
}

class Tracer {
 public:
  Tracer(int reader, uint64_t deadlineMs) : reader_(reader), deadlineMs_(deadlineMs) {}

  // False: the reader is gone or too slow.
  bool trace(const Target& target);
  // Waits for the reader's end, and lets go of threads that stop late.
  void finish();

 private:
  bool problem(const Target& target, Problem problem, uint32_t detail = 0);
  bool send(const Packet& packet, int descriptor);
  bool awaitAnswer(uint64_t untilMs);
  // Problem::none: at least one thread is stopped.
  Problem stop(Packet& packet, uint32_t& detail);
  void awaitStops(Packet& packet);
  void letGo();

  int reader_;
  uint64_t deadlineMs_;
  std::vector<pid_t> traced_;
};

bool Tracer::problem(const Target& target, Problem problem, uint32_t detail) {
  Packet packet;
  packet.request = Request::problem;
  packet.rank = target.rank;
  packet.process = target.process;
  packet.problem = problem;
  packet.detail = detail;
  return send(packet, -1);
}

bool Tracer::send(const Packet& packet, int descriptor) {
  const size_t bytes = offsetof(Packet, states) + packet.threads * sizeof(ThreadState);
  iovec part = {const_cast<Packet*>(&packet), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return sendmsg(reader_, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

bool Tracer::awaitAnswer(uint64_t untilMs) {
  for (;;) {
    const uint64_t now = nowMs();
    pollfd answer = {.fd = reader_, .events = POLLIN, .revents = 0};
    const int ready = poll(&answer, 1, now < untilMs ? static_cast<int>(untilMs - now) : 0);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char byte = 0;
    return recv(reader_, &byte, 1, MSG_DONTWAIT) == 1;
  }
}

Problem Tracer::stop(Packet& packet, uint32_t& detail) {
  bool anySleeps = false;
  for (uint32_t i = 0; i < packet.threads; ++i) {
    const ThreadState& state = packet.states[i];
    if (state.state == 'D') anySleeps = true;
    if (strchr("DZXxt", state.state) != nullptr) continue;
    if (ptrace(PTRACE_SEIZE, state.thread, 0, 0) < 0) {
      if (errno == ESRCH) continue;
      detail = static_cast<uint32_t>(errno);
      return Problem::notPermitted;
    }
    traced_.push_back(state.thread);
    ptrace(PTRACE_INTERRUPT, state.thread, 0, 0);
  }
  if (traced_.empty()) return anySleeps ? Problem::uninterruptible : Problem::gone;
  awaitStops(packet);
  const bool anyStopped = std::any_of(packet.states, packet.states + packet.threads,
                                      [](const ThreadState& state) { return state.isStopped; });
  return anyStopped ? Problem::none : Problem::notStopped;
}

void Tracer::awaitStops(Packet& packet) {
  const uint64_t until = std::min(nowMs() + kStopMs, deadlineMs_);
  long wait = 20;
  for (;;) {
    bool allStopped = true;
    for (uint32_t i = 0; i < packet.threads; ++i) {
      ThreadState& state = packet.states[i];
      const bool isTraced = std::find(traced_.begin(), traced_.end(), state.thread) != traced_.end();
      if (!isTraced || state.isStopped) continue;
      if (!readRegisters(state) && kill(state.thread, 0) == 0) allStopped = false;
    }
    if (allStopped || nowMs() >= until) return;
    pause(wait);
    wait = std::min(wait * 2, 2000L);
  }
}

void Tracer::letGo() {
  std::erase_if(traced_, [](pid_t thread) { return detach(thread) || kill(thread, 0) < 0; });
}

bool Tracer::trace(const Target& target) {
  if (nowMs() >= deadlineMs_) return problem(target, Problem::late);
  const std::string status = processFile(target.process, "status");
  if (status.empty()) return problem(target, Problem::gone);
  if (!descendsFromUs(target.process)) return problem(target, Problem::notOurs);
  const long user = statusField(status, "Uid");
  if (geteuid() != 0 && user != static_cast<long>(geteuid()))
    return problem(target, Problem::otherUser, static_cast<uint32_t>(user));
  if (const long debugger = statusField(status, "TracerPid"); debugger > 0)
    return problem(target, Problem::traced, static_cast<uint32_t>(debugger));
  const int memory = open(("/proc/" + std::to_string(target.process) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  if (memory < 0)
    return problem(target, errno == ENOENT ? Problem::gone : Problem::notPermitted, static_cast<uint32_t>(errno));
  Packet packet;
  packet.rank = target.rank;
  packet.process = target.process;
  const bool isPrepared = send(packet, memory) && awaitAnswer(deadlineMs_);
  close(memory);
  if (!isPrepared) return false;
  listThreads(target.process, packet);
  uint32_t detail = 0;
  const Problem why = stop(packet, detail);
  bool isCopied = why != Problem::none;
  if (why == Problem::none) {
    packet.request = Request::threads;
    isCopied = send(packet, -1) && awaitAnswer(std::min(nowMs() + kCopyMs, deadlineMs_));
  }
  letGo();
  return why == Problem::none ? isCopied : problem(target, why, detail);
}

void Tracer::finish() {
  shutdown(reader_, SHUT_WR);
  while (nowMs() < deadlineMs_) {
    letGo();
    pollfd end = {.fd = reader_, .events = POLLIN, .revents = 0};
    if (poll(&end, 1, traced_.empty() ? static_cast<int>(deadlineMs_ - nowMs()) : 5) != 0) return;
  }
}

}  // namespace

void traceAll(const std::vector<Target>& targets, int reader, uint64_t deadlineMs) {
  Tracer tracer(reader, deadlineMs);
  bool goesOn = true;
  for (const Target& target : targets) goesOn = goesOn && tracer.trace(target);
  if (goesOn) tracer.finish();
  close(reader);
}

}  // namespace ncclrun::stack
