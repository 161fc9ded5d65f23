// How the thread that stops ranks (tracer.h) and the process that understands what they hold (reader.h) speak: packets
// over a socket pair of one host and one program. The reader answers `prepare` and `threads` with one byte each.
//
//   tracer ──prepare, /proc/PID/mem──▶ reader   finds out what can be found while the process runs
//          ──threads──▶                         copies stacks and interpreter frames; the process is stopped
//          (the process goes on)                follows the copies, reports
//          ──problem──▶                         reports why there is no stack
#pragma once
#include <sys/types.h>

#include <cstdint>

#include "stack/registers.h"

namespace ncclrun::stack {

inline constexpr uint32_t kMaxThreads = 32;

// Why a rank has no stack. The twin of control/messages/stack.ts.
enum class Problem : uint32_t {
  none = 0,
  gone = 1,             // the process has ended
  notPermitted = 2,     // the kernel refuses; detail: errno
  traced = 3,           // detail: process number of its debugger
  uninterruptible = 4,  // every thread sleeps so that nothing can stop it
  otherUser = 5,        // detail: user number
  notStopped = 6,       // no thread has stopped in time
  notOurs = 7,          // no descendant of the guardian
  late = 8,             // the time was up before it was its turn
  failed = 9,           // the reader has ended, or there is none; detail: errno
};

struct ThreadState {
  int32_t thread = 0;
  char state = 0;          // as /proc has it: R, S, D, T…
  bool isStopped = false;  // the registers are known
  char name[18] = {};
  uint64_t threadPointer = 0;
  Registers registers;
};

enum class Request : uint32_t { prepare, threads, problem };

struct Packet {
  Request request = Request::prepare;
  uint32_t rank = 0;
  int32_t process = 0;
  Problem problem = Problem::none;
  uint32_t detail = 0;
  uint32_t threads = 0;  // in `states`
  uint32_t omitted = 0;  // threads beyond
  ThreadState states[kMaxThreads];
};

}  // namespace ncclrun::stack
