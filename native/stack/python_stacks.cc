#include "stack/python_stacks.h"

#include <algorithm>

#include "stack/python_lines.h"
#include "stack/unwind.h"

namespace ncclrun::stack {
namespace {

// Lists of a process that overwrites its memory may have no end.
constexpr size_t kMaxInterpreters = 16;
constexpr size_t kMaxThreadStates = 512;
constexpr size_t kMaxSteps = 1000;
constexpr size_t kMaxLetters = 400;
constexpr size_t kMaxTable = 256 << 10;
constexpr uint64_t kTags = 3;          // 3.14 keeps bits in pointers to objects
constexpr uint8_t kOwnedByNobody = 3;  // since 3.12: frames that stand for C code that called the interpreter
#if defined(__aarch64__)
constexpr uint64_t kThreadBlock = 4096;  // glibc keeps a thread's own data below its thread pointer
#else
constexpr uint64_t kThreadBlock = 0;
#endif

void appendUtf8(std::string& text, uint32_t letter) {
  if (letter < 0x80) {
    text += static_cast<char>(letter);
  } else if (letter < 0x800) {
    text += static_cast<char>(0xc0 | letter >> 6);
    text += static_cast<char>(0x80 | (letter & 0x3f));
  } else if (letter < 0x10000) {
    text += static_cast<char>(0xe0 | letter >> 12);
    text += static_cast<char>(0x80 | (letter >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (letter & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | (letter >> 18 & 7));
    text += static_cast<char>(0x80 | (letter >> 12 & 0x3f));
    text += static_cast<char>(0x80 | (letter >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (letter & 0x3f));
  }
}

struct Code {
  std::string name;
  std::string file;
  int32_t firstLine = 0;
  std::vector<uint8_t> lines;
};

class PythonReader {
 public:
  PythonReader(const PythonRuntime& runtime, const ByteSource& memory)
      : runtime_(runtime), layout_(runtime.layout), memory_(memory) {}

  std::vector<std::vector<PythonFrame>> read(const Packet& packet);

 private:
  uint64_t pointer(uint64_t address) const {
    uint64_t value = 0;
    return memory_.read(address, value) ? value : 0;
  }
  uint8_t byteAt(uint64_t address) const {
    uint8_t value = 0;
    return memory_.read(address, value) ? value : 0;
  }
  std::string text(uint64_t object) const;
  const Code* codeAt(uint64_t object);
  uint64_t offsetIn(uint64_t frame, uint64_t code) const;
  std::vector<PythonFrame> frames(uint64_t threadState);
  // The number of the thread in the packet; none for a thread that it does not have.
  std::optional<uint32_t> threadOf(uint64_t threadState, const Packet& packet) const;

  const PythonRuntime& runtime_;
  const PythonLayout& layout_;
  const ByteSource& memory_;
  std::map<uint64_t, Code> codes_;
};

std::string PythonReader::text(uint64_t object) const {
  uint32_t state = 0;
  uint64_t length = 0;
  if (!memory_.read(object + layout_.textState, state) || !memory_.read(object + layout_.textLength, length)) return {};
  // Builds without the global lock have a whole byte where others have two bits.
  unsigned shift = 2;
  const auto isWhole = [&] {
    const unsigned kind = state >> shift & 7;
    return (kind == 1 || kind == 2 || kind == 4) && (state >> (shift + 3) & 1) != 0;
  };
  if (!isWhole()) shift = 8;
  if (!isWhole()) return {};
  const unsigned kind = state >> shift & 7;
  const bool isAscii = (state >> (shift + 4) & 1) != 0;
  // The end of a path says more than its beginning.
  const uint64_t dropped = length > kMaxLetters ? length - kMaxLetters : 0;
  const uint64_t start = object + (isAscii ? layout_.asciiText : layout_.otherText) + dropped * kind;
  const std::vector<uint8_t> bytes = memory_.copy(start, static_cast<size_t>(length - dropped) * kind);
  std::string found;
  for (size_t at = 0; at + kind <= bytes.size(); at += kind) {
    uint32_t letter = 0;
    for (unsigned i = 0; i < kind; ++i) letter |= uint32_t{bytes[at + i]} << (8 * i);
    appendUtf8(found, letter);
  }
  return found;
}

const Code* PythonReader::codeAt(uint64_t object) {
  if (object == 0 || (runtime_.codeType != 0 && pointer(object + layout_.type) != runtime_.codeType)) return nullptr;
  const auto [known, isNew] = codes_.try_emplace(object);
  Code& code = known->second;
  if (!isNew) return &code;
  code.name = text(pointer(object + layout_.name));
  code.file = text(pointer(object + layout_.file));
  memory_.read(object + layout_.firstLine, code.firstLine);
  const uint64_t table = pointer(object + layout_.lines);
  const uint64_t length = table == 0 ? 0 : pointer(table + layout_.bytesLength);
  if (length <= kMaxTable) code.lines = memory_.copy(table + layout_.bytes, static_cast<size_t>(length));
  return &code;
}

// Of the instruction that a frame executes, in bytes.
uint64_t PythonReader::offsetIn(uint64_t frame, uint64_t code) const {
  if (layout_.instructions != kNoField) {
    return pointer(frame + layout_.instruction) - (code + layout_.instructions);
  }
  int32_t index = 0;
  if (!memory_.read(frame + layout_.instruction, index) || index < 0) return 0;
  return static_cast<uint64_t>(index) * (layout_.minor == 9 ? 1 : 2);
}

std::vector<PythonFrame> PythonReader::frames(uint64_t threadState) {
  std::vector<PythonFrame> found;
  uint64_t frame = threadState;
  if (layout_.callFrame != kNoField) frame = pointer(threadState + layout_.callFrame);
  frame = frame == 0 ? 0 : pointer(frame + layout_.frame);
  for (size_t step = 0; frame != 0 && step < kMaxSteps && found.size() < kMaxFrames; ++step) {
    const bool isC = layout_.owner != kNoField && byteAt(frame + layout_.owner) >= kOwnedByNobody;
    if (isC) {
      if (!found.empty()) found.back().isEntry = true;
    } else {
      const uint64_t object = pointer(frame + layout_.code) & ~kTags;
      if (const Code* code = codeAt(object)) {
        const uint32_t line = pythonLine(layout_.minor, code->lines, code->firstLine, offsetIn(frame, object));
        // Before 3.11 the interpreter calls itself for every function.
        const bool isEntry =
            layout_.owner == kNoField || (layout_.isEntry != kNoField && byteAt(frame + layout_.isEntry) != 0);
        found.push_back({code->name, code->file, line, isEntry});
      }
    }
    frame = pointer(frame + layout_.previous);
  }
  return found;
}

std::optional<uint32_t> PythonReader::threadOf(uint64_t threadState, const Packet& packet) const {
  // pthread_self(), which is the same in every namespace.
  const uint64_t self = pointer(threadState + layout_.threadId);
  for (uint32_t i = 0; i < packet.threads; ++i) {
    const uint64_t threadPointer = packet.states[i].threadPointer;
    if (packet.states[i].isStopped && self != 0 && threadPointer - self <= kThreadBlock) return i;
  }
  if (layout_.nativeThreadId == kNoField) return {};
  const uint64_t native = pointer(threadState + layout_.nativeThreadId);
  for (uint32_t i = 0; i < packet.threads; ++i) {
    if (packet.states[i].isStopped && static_cast<uint64_t>(packet.states[i].thread) == native) return i;
  }
  return {};
}

std::vector<std::vector<PythonFrame>> PythonReader::read(const Packet& packet) {
  std::vector<std::vector<PythonFrame>> stacks(packet.threads);
  uint64_t interpreter = pointer(runtime_.address + layout_.interpreters);
  for (size_t i = 0; interpreter != 0 && i < kMaxInterpreters; ++i) {
    uint64_t threadState = pointer(interpreter + layout_.threads);
    for (size_t k = 0; threadState != 0 && k < kMaxThreadStates; ++k) {
      const std::optional<uint32_t> thread = threadOf(threadState, packet);
      // A thread of several interpreters has a state in each; one of them runs.
      if (thread && stacks[*thread].empty()) stacks[*thread] = frames(threadState);
      threadState = pointer(threadState + layout_.nextThread);
    }
    interpreter = pointer(interpreter + layout_.nextInterpreter);
  }
  return stacks;
}

}  // namespace

std::vector<std::vector<PythonFrame>> readPythonStacks(const PythonRuntime& runtime, const Packet& packet,
                                                       const ByteSource& memory) {
  return PythonReader(runtime, memory).read(packet);
}

}  // namespace ncclrun::stack
