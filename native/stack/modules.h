// The files that processes have mapped, each read once for all processes.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stack/byte_source.h"
#include "stack/elf_image.h"
#include "stack/memory_map.h"

namespace ncclrun::stack {

// Where an address lies in a module.
struct CodePlace {
  const ElfImage* image = nullptr;  // null: the file cannot be read, or it is none
  uint64_t address = 0;             // in the image, before relocation
};

class Modules {
 public:
  // The place of an address in a mapping of a process. `memory`: of the process, for what is in no file.
  CodePlace placeOf(int pid, const Mapping& mapping, uint64_t address, const ByteSource& memory);
  // The image of a mapped file; null as above. It lives as long as this object, or until forgetMemory().
  const ElfImage* imageOf(int pid, const Mapping& mapping, const ByteSource& memory);
  // Forgets images that are read from a process's memory.
  void forgetMemory() { inMemory_.clear(); }

 private:
  struct File {
    uint64_t device;
    uint64_t inode;
    auto operator<=>(const File&) const = default;
  };
  std::map<File, std::unique_ptr<ElfImage>> files_;
  std::map<uint64_t, std::unique_ptr<ElfImage>> inMemory_;  // by start address
};

}  // namespace ncclrun::stack
