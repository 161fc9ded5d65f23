// Where CPython keeps what a stack consists of. From 3.13 on its runtime says so itself (_Py_DebugOffsets); for 3.9 to
// 3.12 these are the offsets of x86-64 and aarch64, as `offsetof` gives them with the headers of those versions.
#pragma once
#include <cstdint>
#include <optional>

#include "stack/byte_source.h"

namespace ncclrun::stack {

inline constexpr uint64_t kNoField = ~uint64_t{0};

struct PythonLayout {
  unsigned minor = 0;  // of the version: 3.minor
  // _PyRuntimeState, PyInterpreterState, PyThreadState
  uint64_t interpreters = 0;
  uint64_t nextInterpreter = 0;
  uint64_t threads = 0;
  uint64_t nextThread = 0;
  uint64_t threadId = 0;
  uint64_t nativeThreadId = kNoField;
  uint64_t frame = 0;             // of the thread, or of its _PyCFrame
  uint64_t callFrame = kNoField;  // pointer to the _PyCFrame
  // PyFrameObject, _PyInterpreterFrame
  uint64_t previous = 0;
  uint64_t code = 0;
  uint64_t instruction = 0;  // an index for 3.9 and 3.10, else a pointer
  uint64_t owner = kNoField;
  uint64_t isEntry = kNoField;
  // PyCodeObject
  uint64_t file = 0;
  uint64_t name = 0;
  uint64_t firstLine = 0;
  uint64_t lines = 0;
  uint64_t instructions = kNoField;
  // str, bytes, object
  uint64_t asciiText = 48;
  uint64_t otherText = 72;
  uint64_t textState = 32;
  uint64_t textLength = 16;
  uint64_t bytesLength = 16;
  uint64_t bytes = 32;
  uint64_t type = 8;
};

// None for versions that are not known.
std::optional<PythonLayout> pythonLayout(unsigned minor);
// As the runtime at this address describes itself; none if it does not, or is of a version that is not known. `version`
// gets its PY_VERSION_HEX where it has one.
std::optional<PythonLayout> describedLayout(const ByteSource& memory, uint64_t runtime, uint32_t& version);

}  // namespace ncclrun::stack
