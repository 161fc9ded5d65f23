#include "stack/python_layout.h"

#include <cstring>
#include <vector>

namespace ncclrun::stack {
namespace {

PythonLayout layout39() {
  PythonLayout layout;
  layout.minor = 9;
  layout.interpreters = 32;
  layout.threads = 8;
  layout.nextThread = 8;
  layout.threadId = 176;
  layout.frame = 24;
  layout.previous = 24;
  layout.code = 32;
  layout.instruction = 104;
  layout.file = 104;
  layout.name = 112;
  layout.firstLine = 40;
  layout.lines = 120;
  return layout;
}

PythonLayout layout310() {
  PythonLayout layout = layout39();
  layout.minor = 10;
  layout.instruction = 96;
  return layout;
}

PythonLayout layout311() {
  PythonLayout layout;
  layout.minor = 11;
  layout.interpreters = 40;
  layout.threads = 16;
  layout.nextThread = 8;
  layout.threadId = 152;
  layout.nativeThreadId = 160;
  layout.callFrame = 56;
  layout.frame = 8;
  layout.code = 32;
  layout.previous = 48;
  layout.instruction = 56;
  layout.owner = 69;
  layout.isEntry = 68;
  layout.file = 112;
  layout.name = 120;
  layout.firstLine = 72;
  layout.lines = 136;
  layout.instructions = 184;
  return layout;
}

PythonLayout layout312() {
  PythonLayout layout = layout311();
  layout.minor = 12;
  layout.threads = 72;
  layout.threadId = 136;
  layout.nativeThreadId = 144;
  layout.frame = 0;
  layout.code = 0;
  layout.previous = 8;
  layout.owner = 70;
  layout.isEntry = kNoField;
  layout.firstLine = 68;
  layout.instructions = 192;
  layout.asciiText = 40;
  layout.otherText = 56;
  return layout;
}

// Where the words of _Py_DebugOffsets stand that we need: Include/internal/pycore_debug_offsets.h.
struct Words {
  size_t threadState;
  size_t threadIds;
  size_t frame;
  size_t code;
  size_t object;
  size_t bytes;
  size_t text;
};
constexpr Words kWords313 = {19, 24, 28, 34, 44, 64, 67};
constexpr Words kWords314 = {22, 27, 31, 39, 50, 74, 77};
constexpr Words kWords315 = {22, 30, 39, 47, 58, 86, 89};
constexpr size_t kWordCount = 96;

const Words* wordsOf(unsigned minor) {
  switch (minor) {
    case 13:
      return &kWords313;
    case 14:
      return &kWords314;
    case 15:
      return &kWords315;
    default:
      return nullptr;
  }
}

}  // namespace

std::optional<PythonLayout> pythonLayout(unsigned minor) {
  switch (minor) {
    case 9:
      return layout39();
    case 10:
      return layout310();
    case 11:
      return layout311();
    case 12:
      return layout312();
    default:
      return {};
  }
}

std::optional<PythonLayout> describedLayout(const ByteSource& memory, uint64_t runtime, uint32_t& version) {
  uint64_t word[kWordCount];
  if (!memory.read(runtime, word) || memcmp(word, "xdebugpy", 8) != 0) return {};
  version = static_cast<uint32_t>(word[1]);
  PythonLayout layout;
  layout.minor = version >> 16 & 0xff;
  const Words* const words = wordsOf(layout.minor);
  if (version >> 24 != 3 || words == nullptr) return {};
  const Words& at = *words;
  layout.interpreters = word[5];
  layout.nextInterpreter = word[8];
  layout.threads = word[9];
  layout.nextThread = word[at.threadState + 2];
  layout.frame = word[at.threadState + 4];
  layout.threadId = word[at.threadIds];
  layout.nativeThreadId = word[at.threadIds + 1];
  layout.previous = word[at.frame + 1];
  layout.code = word[at.frame + 2];
  layout.instruction = word[at.frame + 3];
  layout.owner = word[at.frame + 5];
  layout.file = word[at.code + 1];
  layout.name = word[at.code + 2];
  layout.lines = word[at.code + 4];
  layout.firstLine = word[at.code + 5];
  layout.instructions = word[at.code + 9];
  layout.type = word[at.object + 1];
  layout.bytesLength = word[at.bytes + 1];
  layout.bytes = word[at.bytes + 2];
  layout.textState = word[at.text + 1];
  layout.textLength = word[at.text + 2];
  layout.asciiText = word[at.text + 3];
  layout.otherText = layout.asciiText + 16;  // PyCompactUnicodeObject adds a length and a pointer
  return layout;
}

}  // namespace ncclrun::stack
