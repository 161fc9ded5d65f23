#include "stack/call_frame.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "stack/cursor.h"
#include "stack/expression.h"

namespace ncclrun::stack {
namespace {

constexpr uint8_t kOmitted = 0xff;
constexpr size_t kMaxEntryBytes = 64 << 10;
constexpr size_t kMaxRemembered = 16;
constexpr uint64_t kMaxScannedBytes = 64 << 20;

// A pointer in the encoding of the Linux Standard Base. `base`: address of the section, `at`: of the cursor's start.
uint64_t takePointer(Cursor& cursor, uint8_t encoding, uint64_t at, uint64_t dataBase) {
  const uint64_t place = at + cursor.offset();
  uint64_t value = 0;
  switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
      value = cursor.take<uint64_t>();
      break;
    case 0x01:
      value = cursor.uleb();
      break;
    case 0x02:
      value = cursor.take<uint16_t>();
      break;
    case 0x03:
      value = cursor.take<uint32_t>();
      break;
    case 0x09:
      value = static_cast<uint64_t>(cursor.sleb());
      break;
    case 0x0a:
      value = static_cast<uint64_t>(int64_t{cursor.take<int16_t>()});
      break;
    case 0x0b:
      value = static_cast<uint64_t>(int64_t{cursor.take<int32_t>()});
      break;
    default:
      cursor.fail();
  }
  switch (encoding & 0xf0) {
    case 0x00:
      return value;
    case 0x10:
      return value + place;
    case 0x30:
      return value + dataBase;
    default:
      cursor.fail();  // through memory, or relative to what compilers no longer use
      return 0;
  }
}

// What several functions have in common (CIE).
struct Common {
  uint64_t codeAlignment = 1;
  int64_t dataAlignment = 1;
  uint64_t returnRegister = kReturnAddress;
  uint8_t pointerEncoding = 0;
  bool hasAugmentation = false;
  bool isSignalFrame = false;
  std::vector<uint8_t> code;
};

// The frame description of one function (FDE).
struct Function {
  uint64_t begin = 0;
  uint64_t size = 0;
  Common common;
  std::vector<uint8_t> code;
};

// An entry of .eh_frame at an offset of the file: its content behind the length.
struct Entry {
  uint64_t contentOffset = 0;
  uint64_t next = 0;
  std::vector<uint8_t> content;
};

std::optional<Entry> readEntry(const ByteSource& source, uint64_t offset) {
  uint32_t length = 0;
  if (!source.read(offset, length) || length == 0 || length > kMaxEntryBytes) return {};
  Entry entry = {.contentOffset = offset + 4, .next = offset + 4 + length, .content = source.copy(offset + 4, length)};
  if (entry.content.size() != length || length < 4) return {};
  return entry;
}

std::optional<Common> readCommon(const ElfImage& image, uint64_t offset) {
  const std::optional<Entry> entry = readEntry(image.source(), offset);
  if (!entry) return {};
  Cursor cursor(entry->content);
  if (cursor.take<uint32_t>() != 0) return {};
  const auto version = cursor.take<uint8_t>();
  if (version != 1 && version != 3) return {};
  char augmentation[16] = {};
  for (size_t i = 0;; ++i) {
    const auto letter = cursor.take<char>();
    if (letter == 0) break;
    if (i + 1 == sizeof augmentation) return {};
    augmentation[i] = letter;
  }
  Common common;
  common.codeAlignment = cursor.uleb();
  common.dataAlignment = cursor.sleb();
  common.returnRegister = version == 1 ? cursor.take<uint8_t>() : cursor.uleb();
  common.hasAugmentation = augmentation[0] == 'z';
  if (augmentation[0] != 0 && !common.hasAugmentation) return {};
  if (common.hasAugmentation) {
    Cursor data(cursor.bytes(cursor.uleb()));
    for (const char* letter = augmentation + 1; *letter != 0 && !data.failed(); ++letter) {
      if (*letter == 'R') common.pointerEncoding = data.take<uint8_t>();
      if (*letter == 'L') data.take<uint8_t>();
      if (*letter == 'S') common.isSignalFrame = true;
      if (*letter == 'P') {
        const auto encoding = data.take<uint8_t>();
        takePointer(data, encoding & 0x0f, 0, 0);
      }
    }
    if (data.failed()) return {};
  }
  const std::span<const uint8_t> code = cursor.bytes(cursor.left());
  if (cursor.failed()) return {};
  common.code.assign(code.begin(), code.end());
  return common;
}

// The function that the entry at `offset` describes; none for one that is damaged or a common part.
std::optional<Function> readFunction(const ElfImage& image, uint64_t offset) {
  const std::optional<Entry> entry = readEntry(image.source(), offset);
  if (!entry) return {};
  Cursor cursor(entry->content);
  const auto distance = cursor.take<uint32_t>();
  if (distance == 0 || distance > entry->contentOffset) return {};
  std::optional<Common> common = readCommon(image, entry->contentOffset - distance);
  const std::optional<uint64_t> address = image.addressAt(entry->contentOffset);
  if (!common || !address) return {};
  Function function;
  function.begin = takePointer(cursor, common->pointerEncoding, *address, 0);
  function.size = takePointer(cursor, common->pointerEncoding & 0x0f, 0, 0);
  if (common->hasAugmentation) cursor.bytes(cursor.uleb());
  const std::span<const uint8_t> code = cursor.bytes(cursor.left());
  if (cursor.failed()) return {};
  function.code.assign(code.begin(), code.end());
  function.common = std::move(*common);
  return function;
}

// By the sorted table of .eh_frame_hdr, in the one encoding that linkers write.
std::optional<uint64_t> entryByIndex(const ElfImage& image, uint64_t address) {
  const Section& index = *image.frameIndex();
  const std::vector<uint8_t> head = image.source().copy(index.offset, 32);
  Cursor cursor(head);
  const auto version = cursor.take<uint8_t>();
  const auto framesEncoding = cursor.take<uint8_t>();
  const auto countEncoding = cursor.take<uint8_t>();
  const auto tableEncoding = cursor.take<uint8_t>();
  if (version != 1 || tableEncoding != 0x3b || countEncoding == kOmitted) return {};
  takePointer(cursor, framesEncoding, index.address, index.address);
  const uint64_t count = takePointer(cursor, countEncoding, index.address, index.address);
  if (cursor.failed()) return {};
  struct Row {
    int32_t begin;
    int32_t entry;
  };
  const uint64_t table = index.offset + cursor.offset();
  uint64_t low = 0;
  uint64_t high = std::min(count, index.size / sizeof(Row));
  Row row = {};
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (!image.source().read(table + middle * sizeof row, row)) return {};
    if (index.address + static_cast<uint64_t>(int64_t{row.begin}) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0 || !image.source().read(table + (low - 1) * sizeof row, row)) return {};
  return image.offsetOf(index.address + static_cast<uint64_t>(int64_t{row.entry}));
}

std::optional<Function> findFunction(const ElfImage& image, uint64_t address) {
  const auto holds = [&](const std::optional<Function>& function) {
    return function && address >= function->begin && address - function->begin < function->size;
  };
  if (image.frameIndex()) {
    if (const std::optional<uint64_t> offset = entryByIndex(image, address)) {
      std::optional<Function> function = readFunction(image, *offset);
      if (holds(function)) return function;
    }
    return {};
  }
  if (!image.frames()) return {};
  const uint64_t end = image.frames()->offset + std::min(image.frames()->size, kMaxScannedBytes);
  for (uint64_t offset = image.frames()->offset; offset < end;) {
    std::optional<Function> function = readFunction(image, offset);
    if (holds(function)) return function;
    const std::optional<Entry> entry = readEntry(image.source(), offset);
    if (!entry) break;
    offset = entry->next;
  }
  return {};
}

// How a register of the caller is found.
struct Rule {
  enum class Kind : uint8_t { same, undefined, offset, valueOffset, expression, valueExpression, other };
  Kind kind = Kind::same;
  int64_t number = 0;  // offset from the frame's address, or another register
  std::span<const uint8_t> code;
};

struct Row {
  uint64_t addressRegister = 0;
  int64_t addressOffset = 0;
  std::span<const uint8_t> addressExpression;
  Rule rules[kRegisters];
};

// Runs the instructions up to an address of the function.
class Program {
 public:
  Program(const Function& function, uint64_t address)
      : common_(function.common), location_(function.begin), address_(address) {}

  bool run(std::span<const uint8_t> code, bool isCommon) {
    cursor_ = Cursor(code);
    while (!cursor_.atEnd() && location_ <= address_) execute(cursor_.take<uint8_t>());
    if (isCommon) initial_ = row_;
    return !cursor_.failed();
  }
  const Row& row() const { return row_; }

 private:
  void set(uint64_t number, Rule rule) {
    if (number < kRegisters) row_.rules[number] = rule;  // others do not lead to the caller
  }
  void advance(uint64_t distance) {
    const uint64_t next = location_ + distance * common_.codeAlignment;
    location_ = next < location_ ? ~uint64_t{0} : next;
  }
  int64_t factored(int64_t offset) const {
    return static_cast<int64_t>(static_cast<uint64_t>(offset) * static_cast<uint64_t>(common_.dataAlignment));
  }
  void restore(uint64_t number) {
    if (number < kRegisters) row_.rules[number] = initial_.rules[number];
  }
  void defineAddress(uint64_t number, int64_t offset) {
    row_.addressRegister = number;
    row_.addressOffset = offset;
    row_.addressExpression = {};
  }
  void execute(uint8_t instruction);
  void executeExtended(uint8_t instruction);
  void defineFrame(uint8_t instruction);

  const Common& common_;
  uint64_t location_;
  uint64_t address_;
  Cursor cursor_{{}};
  Row row_;
  Row initial_;
  std::vector<Row> remembered_;
};

void Program::execute(uint8_t instruction) {
  const uint8_t low = instruction & 0x3f;
  switch (instruction & 0xc0) {
    case 0x40:
      return advance(low);
    case 0x80:
      return set(low, {Rule::Kind::offset, factored(static_cast<int64_t>(cursor_.uleb())), {}});
    case 0xc0:
      return restore(low);
    default:
      return executeExtended(low);
  }
}

void Program::defineFrame(uint8_t instruction) {
  switch (instruction) {
    case 0x0c: {  // def_cfa
      const uint64_t number = cursor_.uleb();
      return defineAddress(number, static_cast<int64_t>(cursor_.uleb()));
    }
    case 0x12: {  // def_cfa_sf
      const uint64_t number = cursor_.uleb();
      return defineAddress(number, factored(cursor_.sleb()));
    }
    case 0x0d:  // def_cfa_register
      return defineAddress(cursor_.uleb(), row_.addressOffset);
    case 0x0e:  // def_cfa_offset
      row_.addressOffset = static_cast<int64_t>(cursor_.uleb());
      return;
    case 0x13:  // def_cfa_offset_sf
      row_.addressOffset = factored(cursor_.sleb());
      return;
    case 0x0f:  // def_cfa_expression
      row_.addressExpression = cursor_.bytes(cursor_.uleb());
      return;
    default:
      return cursor_.fail();
  }
}

void Program::executeExtended(uint8_t instruction) {
  switch (instruction) {
    case 0x00:  // nop
      return;
    case 0x01:  // set_loc: an absolute address, which needs no relocation in .eh_frame
      return cursor_.fail();
    case 0x02:
      return advance(cursor_.take<uint8_t>());
    case 0x03:
      return advance(cursor_.take<uint16_t>());
    case 0x04:
      return advance(cursor_.take<uint32_t>());
    case 0x05: {  // offset_extended
      const uint64_t number = cursor_.uleb();
      return set(number, {Rule::Kind::offset, factored(static_cast<int64_t>(cursor_.uleb())), {}});
    }
    case 0x06:
      return restore(cursor_.uleb());
    case 0x07:
      return set(cursor_.uleb(), {Rule::Kind::undefined, 0, {}});
    case 0x08:
      return set(cursor_.uleb(), {Rule::Kind::same, 0, {}});
    case 0x09: {  // register
      const uint64_t number = cursor_.uleb();
      return set(number, {Rule::Kind::other, static_cast<int64_t>(cursor_.uleb()), {}});
    }
    case 0x0a:  // remember_state
      if (remembered_.size() == kMaxRemembered) return cursor_.fail();
      return remembered_.push_back(row_);
    case 0x0b:  // restore_state
      if (remembered_.empty()) return cursor_.fail();
      row_ = remembered_.back();
      return remembered_.pop_back();
    case 0x10:    // expression
    case 0x16: {  // val_expression
      const uint64_t number = cursor_.uleb();
      const Rule::Kind kind = instruction == 0x10 ? Rule::Kind::expression : Rule::Kind::valueExpression;
      return set(number, {kind, 0, cursor_.bytes(cursor_.uleb())});
    }
    case 0x11: {  // offset_extended_sf
      const uint64_t number = cursor_.uleb();
      return set(number, {Rule::Kind::offset, factored(cursor_.sleb()), {}});
    }
    case 0x14: {  // val_offset
      const uint64_t number = cursor_.uleb();
      return set(number, {Rule::Kind::valueOffset, factored(static_cast<int64_t>(cursor_.uleb())), {}});
    }
    case 0x15: {  // val_offset_sf
      const uint64_t number = cursor_.uleb();
      return set(number, {Rule::Kind::valueOffset, factored(cursor_.sleb()), {}});
    }
    case 0x2d:  // the return address is authenticated from here on: plainAddress() copes
      return;
    case 0x2e:  // GNU_args_size
      cursor_.uleb();
      return;
    default:
      return defineFrame(instruction);
  }
}

// The caller's value of a register. None: it cannot be had.
std::optional<uint64_t> apply(const Rule& rule, size_t number, uint64_t frame, const Registers& registers,
                              const ByteSource& memory) {
  const auto load = [&](uint64_t address) -> std::optional<uint64_t> {
    uint64_t value = 0;
    if (!memory.read(address, value)) return {};
    return value;
  };
  switch (rule.kind) {
    case Rule::Kind::same:
      return number == kStackPointer ? frame : registers.value[number];
    case Rule::Kind::offset:
      return load(frame + static_cast<uint64_t>(rule.number));
    case Rule::Kind::valueOffset:
      return frame + static_cast<uint64_t>(rule.number);
    case Rule::Kind::expression: {
      const std::optional<uint64_t> address = evaluate(rule.code, registers, memory, frame);
      return address ? load(*address) : std::nullopt;
    }
    case Rule::Kind::valueExpression:
      return evaluate(rule.code, registers, memory, frame);
    case Rule::Kind::other:
      if (static_cast<uint64_t>(rule.number) < kRegisters) return registers.value[rule.number];
      return {};
    default:
      return {};
  }
}

}  // namespace

Step stepByCallFrame(const ElfImage& image, uint64_t address, const ByteSource& memory, Registers& registers,
                     bool& isSignalFrame) {
  const std::optional<Function> function = findFunction(image, address);
  if (!function || function->common.returnRegister >= kRegisters) return Step::unknown;
  Program program(*function, address);
  if (!program.run(function->common.code, true) || !program.run(function->code, false)) return Step::unknown;
  const Row& row = program.row();
  if (row.rules[function->common.returnRegister].kind == Rule::Kind::undefined) return Step::outermost;
  std::optional<uint64_t> frame;
  if (!row.addressExpression.empty()) {
    frame = evaluate(row.addressExpression, registers, memory, {});
  } else if (row.addressRegister < kRegisters) {
    frame = registers.value[row.addressRegister] + static_cast<uint64_t>(row.addressOffset);
  }
  if (!frame) return Step::unknown;
  Registers caller = registers;
  for (size_t number = 0; number < kRegisters; ++number) {
    const std::optional<uint64_t> value = apply(row.rules[number], number, *frame, registers, memory);
    if (!value && (number == function->common.returnRegister || number == kStackPointer)) return Step::unknown;
    caller.value[number] = value.value_or(0);
  }
  caller.pc = plainAddress(caller.value[function->common.returnRegister]);
  isSignalFrame = function->common.isSignalFrame;
  registers = caller;
  return Step::stepped;
}

}  // namespace ncclrun::stack
