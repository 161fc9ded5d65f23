// What is read of a process's memory: expressions of call frame information, line tables of every version of Python,
// maps, names of code that was made, and Python's own structures. The first byte says which.
#include <cstdlib>
#include <string_view>

#include "stack/expression.h"
#include "stack/memory_map.h"
#include "stack/perf_map.h"
#include "stack/python_lines.h"
#include "stack/python_stacks.h"

using namespace ncclrun::stack;

namespace {

void readPython(std::span<const uint8_t> bytes, unsigned minor) {
  const SpanSource memory(bytes);
  uint32_t version = 0;
  const std::optional<PythonLayout> layout = minor > 12 ? describedLayout(memory, 0, version) : pythonLayout(minor);
  if (!layout) return;
  Packet packet;
  packet.threads = 1;
  packet.states[0].isStopped = true;
  packet.states[0].threadPointer = 1;
  for (const auto& frames : readPythonStacks({*layout, 0, 0}, packet, memory)) {
    if (frames.size() > 128) abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const unsigned minor = 9 + data[0] / 8 % 6;
  switch (data[0] % 5) {
    case 0:
      evaluate(bytes, Registers(), SpanSource(bytes), 1);
      break;
    case 1:
      pythonLine(minor, bytes, 1, size / 2);
      break;
    case 2:
      mappingAt(parseMaps(text), 0x1000);
      break;
    case 3:
      PerfMap(text).nameAt(0x1000);
      break;
    default:
      readPython(bytes, minor);
  }
  return 0;
}
