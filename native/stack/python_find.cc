// Which version of Python a process runs, and where its runtime is.
#include <cstdlib>
#include <cstring>

#include "stack/python_stacks.h"

namespace ncclrun::stack {
namespace {

// "libpython3.9.so.1.0", "python3.10", "/usr/lib/python3.9/lib-dynload/…": 9, 10, 9. 0: none.
unsigned minorIn(const std::string& path) {
  const size_t at = path.find("python3.");
  return at == std::string::npos ? 0 : static_cast<unsigned>(strtoul(path.c_str() + at + 8, nullptr, 10));
}

bool isPython(const std::string& path) {
  const size_t slash = path.rfind('/');
  return path.find("python", slash == std::string::npos ? 0 : slash) != std::string::npos;
}

// An address in the process, of a name of a module whose first mapping this is.
uint64_t addressOf(const ElfImage& image, const Mapping& first, const char* name) {
  const std::optional<uint64_t> address = image.addressOf(name);
  const std::optional<uint64_t> start = image.addressAt(first.offset);
  return address && start ? *address - (*start & ~uint64_t{0xfff}) + first.start : 0;
}

unsigned versionOf(const ElfImage& image, const Mapping& first, const std::vector<Mapping>& maps,
                   const ByteSource& memory) {
  uint32_t version = 0;
  const uint64_t address = addressOf(image, first, "Py_Version");  // since 3.11
  if (address != 0 && memory.read(address, version) && version >> 24 == 3) return version >> 16 & 0xff;
  if (const unsigned minor = minorIn(first.path); minor != 0) return minor;
  for (const Mapping& mapping : maps) {
    if (const unsigned minor = minorIn(mapping.path); minor != 0) return minor;
  }
  return 0;
}

FoundPython describe(const ElfImage& image, const Mapping& first, const std::vector<Mapping>& maps,
                     const ByteSource& memory, uint64_t runtime) {
  FoundPython found;
  uint32_t version = 0;
  std::optional<PythonLayout> layout = describedLayout(memory, runtime, version);
  const unsigned minor = version != 0 ? version >> 16 & 0xff : versionOf(image, first, maps, memory);
  if (!layout) layout = pythonLayout(minor);
  if (layout) {
    found.runtime = PythonRuntime{*layout, runtime, addressOf(image, first, "PyCode_Type")};
  } else {
    found.problem = "frames of Python 3." + std::to_string(minor) + " cannot be read: those of 3.9 to 3.15 can";
  }
  return found;
}

}  // namespace

FoundPython findPython(int process, const std::vector<Mapping>& maps, const ByteSource& memory, Modules& modules) {
  bool isLikely = false;
  for (const Mapping& mapping : maps) isLikely = isLikely || mapping.path.find("python") != std::string::npos;
  if (!isLikely) return {};
  const Mapping* previous = nullptr;
  for (const Mapping& mapping : maps) {
    const bool isFirst = previous == nullptr || previous->path != mapping.path;
    const bool isProgram = previous == nullptr;  // programs that embed Python may have another name
    previous = &mapping;
    if (!isFirst || mapping.path.empty() || (!isProgram && !isPython(mapping.path))) continue;
    const ElfImage* image = modules.imageOf(process, mapping, memory);
    if (image == nullptr) continue;
    const uint64_t runtime = addressOf(*image, mapping, "_PyRuntime");
    if (runtime != 0) return describe(*image, mapping, maps, memory, runtime);
  }
  return {};
}

}  // namespace ncclrun::stack
