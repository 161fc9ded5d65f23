// The frames of Python's threads, from the memory of a stopped process: names, files and lines, never values.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stack/byte_source.h"
#include "stack/modules.h"
#include "stack/protocol.h"
#include "stack/python_layout.h"
#include "stack/report.h"

namespace ncclrun::stack {

struct PythonRuntime {
  PythonLayout layout;
  uint64_t address = 0;   // of _PyRuntime
  uint64_t codeType = 0;  // of PyCode_Type; 0: unknown
};

struct FoundPython {
  std::optional<PythonRuntime> runtime;  // none: the process is no Python, or see `problem`
  std::string problem;
};

// Looks for an interpreter in a process, which need not be stopped.
FoundPython findPython(int process, const std::vector<Mapping>& maps, const ByteSource& memory, Modules& modules);

// Frames of each thread of `packet`, in its order; the process is stopped.
std::vector<std::vector<PythonFrame>> readPythonStacks(const PythonRuntime& runtime, const Packet& packet,
                                                       const ByteSource& memory);

}  // namespace ncclrun::stack
