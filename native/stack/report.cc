#include "stack/report.h"

#include <algorithm>

namespace ncclrun::stack {
namespace {

constexpr size_t kMaxText = 512;

class Writer {
 public:
  void number(uint32_t value) { append(&value, sizeof value); }
  void large(uint64_t value) { append(&value, sizeof value); }
  void text(const std::string& value) {
    const size_t size = std::min(value.size(), kMaxText);
    number(static_cast<uint32_t>(size));
    append(value.data(), size);
  }
  std::vector<char> finish() { return std::move(bytes_); }

 private:
  void append(const void* value, size_t size) {
    const char* bytes = static_cast<const char*>(value);
    bytes_.insert(bytes_.end(), bytes, bytes + size);
  }
  std::vector<char> bytes_;
};

}  // namespace

std::vector<char> encodeReport(const RankReport& report) {
  Writer writer;
  writer.number(static_cast<uint32_t>(report.problem));
  writer.number(report.detail);
  writer.number(static_cast<uint32_t>(report.process));
  writer.number(report.omittedThreads);
  writer.text(report.pythonProblem);
  writer.number(static_cast<uint32_t>(report.threads.size()));
  for (const ThreadReport& thread : report.threads) {
    writer.number(static_cast<uint32_t>(thread.thread));
    writer.number(static_cast<uint8_t>(thread.state));
    writer.number((thread.isStopped ? 1u : 0u) | (thread.isCut ? 2u : 0u));
    writer.text(thread.name);
    writer.number(static_cast<uint32_t>(thread.native.size()));
    for (const NativeFrame& frame : thread.native) {
      writer.text(frame.function);
      writer.large(frame.offset);
      writer.text(frame.module);
    }
    writer.number(static_cast<uint32_t>(thread.python.size()));
    for (const PythonFrame& frame : thread.python) {
      writer.text(frame.function);
      writer.text(frame.file);
      writer.number(frame.line);
      writer.number(frame.isEntry ? 1 : 0);
    }
  }
  return writer.finish();
}

}  // namespace ncclrun::stack
