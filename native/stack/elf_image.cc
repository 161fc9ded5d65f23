#include "stack/elf_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "stack/registers.h"

namespace ncclrun::stack {
namespace {

constexpr unsigned kMaxSegments = 256;
constexpr unsigned kMaxSections = 65536;
constexpr uint64_t kMaxSymbolBytes = uint64_t{512} << 20;
constexpr size_t kSymbolsAtOnce = 4096;
constexpr size_t kMaxName = 4096;

// Of two names for one function: the one that programs write.
size_t underscores(const std::string& name) {
  if (name.starts_with("_Z")) return 0;
  return std::min(name.find_first_not_of('_'), name.size());
}

bool isBetter(const std::string& name, const std::string& known) {
  const size_t one = underscores(name);
  const size_t other = underscores(known);
  return one != other ? one < other : name.size() < known.size();
}

bool isFunction(const Elf64_Sym& symbol) {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) return false;
  // Hand-written code has labels without a type.
  return type == STT_FUNC || type == STT_GNU_IFUNC ||
         (type == STT_NOTYPE && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL && symbol.st_size > 0);
}

// Calls `visit` with each symbol of a table; `visit` returns false to stop.
template <typename Visit>
void forEachSymbol(const ByteSource& source, const Section& section, Visit visit) {
  std::vector<Elf64_Sym> some(kSymbolsAtOnce);
  const uint64_t bytes = std::min(section.size, kMaxSymbolBytes);
  for (uint64_t done = 0; done < bytes;) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(bytes - done, some.size() * sizeof(Elf64_Sym)));
    const size_t got = source.readSome(section.offset + done, some.data(), wanted) / sizeof(Elf64_Sym);
    if (got == 0) return;
    for (size_t i = 0; i < got; ++i) {
      if (!visit(some[i])) return;
    }
    done += got * sizeof(Elf64_Sym);
  }
}

}  // namespace

std::unique_ptr<ElfImage> ElfImage::open(std::unique_ptr<ByteSource> source) {
  Elf64_Ehdr header;
  if (!source->read(0, header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return nullptr;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) return nullptr;
  if (header.e_machine != kElfMachine || header.e_phentsize != sizeof(Elf64_Phdr)) return nullptr;
  std::unique_ptr<ElfImage> image(new ElfImage(std::move(source)));
  if (!image->readSegments(header.e_phoff, header.e_phnum)) return nullptr;
  if (header.e_shentsize == sizeof(Elf64_Shdr)) image->readSections(header.e_shoff, header.e_shnum, header.e_shstrndx);
  return image;
}

bool ElfImage::readSegments(uint64_t offset, unsigned count) {
  for (unsigned i = 0; i < count && i < kMaxSegments; ++i) {
    Elf64_Phdr segment;
    if (!source_->read(offset + i * sizeof segment, segment)) return false;
    if (segment.p_type == PT_LOAD) segments_.push_back({segment.p_vaddr, segment.p_offset, segment.p_filesz});
    if (segment.p_type == PT_GNU_EH_FRAME) frameIndex_ = {segment.p_vaddr, segment.p_offset, segment.p_filesz};
  }
  return !segments_.empty();
}

// What is not there, as in a process's memory, is done without.
void ElfImage::readSections(uint64_t offset, unsigned count, unsigned nameIndex) {
  std::vector<Elf64_Shdr> sections(std::min(count, kMaxSections));
  const size_t bytes = sections.size() * sizeof(Elf64_Shdr);
  if (sections.empty() || !source_->read(offset, sections.data(), bytes)) return;
  Section names;
  if (nameIndex < sections.size()) names = {0, sections[nameIndex].sh_offset, sections[nameIndex].sh_size};
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_PROGBITS || section.sh_type == SHT_X86_64_UNWIND) {
      if (!frames_ && nameAt(names, section.sh_name) == ".eh_frame")
        frames_ = {section.sh_addr, section.sh_offset, section.sh_size};
    }
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_link >= sections.size() || section.sh_entsize != sizeof(Elf64_Sym)) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    const SymbolTable table = {{section.sh_addr, section.sh_offset, section.sh_size},
                               {strings.sh_addr, strings.sh_offset, strings.sh_size}};
    tables_.insert(section.sh_type == SHT_SYMTAB ? tables_.begin() : tables_.end(), table);
  }
}

std::string ElfImage::nameAt(const Section& names, uint64_t offset) const {
  std::string name;
  while (offset < names.size && name.size() < kMaxName) {
    char some[128];
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(sizeof some, names.size - offset));
    const size_t got = source_->readSome(names.offset + offset, some, wanted);
    const size_t length = strnlen(some, got);
    name.append(some, length);
    if (length < got || got == 0) break;
    offset += got;
  }
  return name;
}

std::optional<uint64_t> ElfImage::addressAt(uint64_t fileOffset) const {
  for (const Segment& segment : segments_) {
    // A mapping begins with a page, before the segment.
    if (fileOffset + 0xfff >= segment.offset && fileOffset - segment.offset + 0x1000 < segment.size + 0x1000)
      return fileOffset - segment.offset + segment.address;
  }
  return {};
}

std::optional<uint64_t> ElfImage::offsetOf(uint64_t address) const {
  for (const Segment& segment : segments_) {
    if (address >= segment.address && address - segment.address < segment.size)
      return address - segment.address + segment.offset;
  }
  return {};
}

std::vector<Symbol> ElfImage::symbolsAt(std::span<const uint64_t> addresses) const {
  std::vector<Symbol> found(addresses.size());
  for (const SymbolTable& table : tables_) {
    forEachSymbol(*source_, table.symbols, [&](const Elf64_Sym& symbol) {
      if (!isFunction(symbol)) return true;
      auto at = std::lower_bound(addresses.begin(), addresses.end(), symbol.st_value);
      std::string name;
      for (; at != addresses.end() && *at - symbol.st_value < symbol.st_size; ++at) {
        Symbol& known = found[static_cast<size_t>(at - addresses.begin())];
        // The innermost of functions that contain one another.
        if (!known.name.empty() && known.address > symbol.st_value) continue;
        if (name.empty()) name = nameAt(table.names, symbol.st_name);
        if (name.empty()) break;
        if (known.name.empty() || known.address < symbol.st_value || isBetter(name, known.name))
          known = {name, symbol.st_value};
      }
      return true;
    });
  }
  return found;
}

std::optional<uint64_t> ElfImage::addressOf(const char* name) const {
  std::optional<uint64_t> found;
  const size_t length = strlen(name);
  for (const SymbolTable& table : tables_) {
    const std::vector<uint8_t> names =
        source_->copy(table.names.offset, static_cast<size_t>(std::min(table.names.size, kMaxSymbolBytes)));
    forEachSymbol(*source_, table.symbols, [&](const Elf64_Sym& symbol) {
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names.size() || names.size() - symbol.st_name <= length)
        return true;
      if (memcmp(names.data() + symbol.st_name, name, length + 1) != 0) return true;
      found = symbol.st_value;
      return false;
    });
    if (found) break;
  }
  return found;
}

}  // namespace ncclrun::stack
