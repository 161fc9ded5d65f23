// An executable or shared object: where its code lies, what its functions are called, where its call frame information
// is.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stack/byte_source.h"

namespace ncclrun::stack {

// A function around an address.
struct Symbol {
  std::string name;  // as the linker has it; empty: none is known
  uint64_t address = 0;
};

// A part of the file: call frame information and the address that it is loaded at, before relocation.
struct Section {
  uint64_t address = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};

class ElfImage {
 public:
  // Null for bytes that are no 64-bit file of this machine.
  static std::unique_ptr<ElfImage> open(std::unique_ptr<ByteSource> source);

  // The address, before relocation, of a byte of the file; none if it is not loaded.
  std::optional<uint64_t> addressAt(uint64_t fileOffset) const;
  std::optional<uint64_t> offsetOf(uint64_t address) const;
  // Functions around addresses, which are sorted, in their order.
  std::vector<Symbol> symbolsAt(std::span<const uint64_t> addresses) const;
  std::optional<uint64_t> addressOf(const char* name) const;

  const ByteSource& source() const { return *source_; }
  const std::optional<Section>& frameIndex() const { return frameIndex_; }  // .eh_frame_hdr
  const std::optional<Section>& frames() const { return frames_; }          // .eh_frame

 private:
  struct Segment {
    uint64_t address;
    uint64_t offset;
    uint64_t size;
  };
  struct SymbolTable {
    Section symbols;
    Section names;
  };
  explicit ElfImage(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  bool readSegments(uint64_t offset, unsigned count);
  void readSections(uint64_t offset, unsigned count, unsigned nameIndex);
  std::string nameAt(const Section& names, uint64_t offset) const;

  std::unique_ptr<ByteSource> source_;
  std::vector<Segment> segments_;
  std::vector<SymbolTable> tables_;
  std::optional<Section> frameIndex_;
  std::optional<Section> frames_;
};

}  // namespace ncclrun::stack
