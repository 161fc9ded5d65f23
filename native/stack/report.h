// What the reader says about one rank. The payload of FrameKind.readStack to the agent; control/messages/stack.ts has
// the layout.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stack/protocol.h"

namespace ncclrun::stack {

struct NativeFrame {
  std::string function;  // demangled; empty: unknown
  uint64_t offset = 0;   // in the function, or in the module where that is unknown
  std::string module;    // path of the file; empty: code made at run time
};

struct PythonFrame {
  std::string function;
  std::string file;
  uint32_t line = 0;     // 0: unknown
  bool isEntry = false;  // C code called the interpreter for it
};

struct ThreadReport {
  int32_t thread = 0;
  char state = 0;
  bool isStopped = false;
  bool isCut = false;  // there are more native frames
  std::string name;
  std::vector<NativeFrame> native;  // the innermost first
  std::vector<PythonFrame> python;
};

struct RankReport {
  uint32_t rank = 0;
  int32_t process = 0;
  Problem problem = Problem::none;
  uint32_t detail = 0;
  uint32_t omittedThreads = 0;
  std::string pythonProblem;  // why there are no Python frames where there is a Python
  std::vector<ThreadReport> threads;
};

std::vector<char> encodeReport(const RankReport& report);

}  // namespace ncclrun::stack
