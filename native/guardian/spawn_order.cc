#include "guardian/spawn_order.h"

#include <cstring>

namespace ncclrun::guardian {
namespace {

constexpr uint32_t kStdinPipe = 1;
constexpr uint32_t kInteractive = 2;
constexpr uint32_t kMergeStderr = 4;
constexpr uint32_t kPmi = 8;

// Reads integers and strings up to the first error, after which every answer is empty.
class Reader {
 public:
  Reader(std::span<const char> payload, char* strings) : payload_(payload), strings_(strings) {}

  template <typename Integer>
  Integer integer() {
    Integer value = 0;
    if (payload_.size() - offset_ < sizeof value) {
      refuse("it is cut short");
      return 0;
    }
    memcpy(&value, payload_.data() + offset_, sizeof value);
    offset_ += sizeof value;
    return value;
  }

  // The copy ends in a NUL. It fits: on the wire each string has four bytes of length before it.
  char* string() {
    const uint32_t length = count("a string is longer than the order");
    char* copy = strings_;
    if (error_ == nullptr && memchr(payload_.data() + offset_, 0, length) != nullptr) refuse("a string has a NUL");
    if (error_ != nullptr) return const_cast<char*>("");
    memcpy(copy, payload_.data() + offset_, length);
    copy[length] = 0;
    strings_ += length + 1;
    offset_ += length;
    return copy;
  }

  // How many of something follow; each takes at least one byte, which bounds what a lie can make us allocate.
  uint32_t count(const char* error) {
    const uint32_t value = integer<uint32_t>();
    if (error_ == nullptr && value > payload_.size() - offset_) refuse(error);
    return error_ == nullptr ? value : 0;
  }

  void refuse(const char* error) {
    if (error_ == nullptr) error_ = error;
  }
  const char* error() const { return error_; }
  size_t offset() const { return offset_; }
  bool atEnd() const { return offset_ == payload_.size(); }

 private:
  std::span<const char> payload_;
  char* strings_;
  size_t offset_ = 0;
  const char* error_ = nullptr;
};

void readStrings(Reader& reader, const char* error, std::vector<char*>& out) {
  const uint32_t count = reader.count(error);
  for (uint32_t i = 0; i < count && reader.error() == nullptr; ++i) out.push_back(reader.string());
}

void readRank(Reader& reader, RankOrder& out) {
  out.rank = reader.integer<uint32_t>();
  const uint32_t flags = reader.integer<uint32_t>();
  if ((flags & ~(kStdinPipe | kInteractive | kMergeStderr | kPmi)) != 0)
    reader.refuse("a rank has flags that this guardian does not know");
  out.stdinPipe = (flags & kStdinPipe) != 0;
  out.interactive = (flags & kInteractive) != 0;
  out.mergeStderr = (flags & kMergeStderr) != 0;
  out.pmi = (flags & kPmi) != 0;
  out.workingDirectory = reader.string();

  readStrings(reader, "there are more arguments than bytes", out.arguments);
  if (out.arguments.empty()) reader.refuse("a rank has no program");
  out.arguments.push_back(nullptr);

  readStrings(reader, "there are more environment variables than bytes", out.environment);
  for (const char* variable : out.environment) {
    if (strchr(variable, '=') == nullptr) reader.refuse("an environment variable has no '='");
  }

  const uint32_t cpus = reader.count("there are more CPUs than bytes");
  for (uint32_t i = 0; i < cpus && reader.error() == nullptr; ++i) {
    out.cpus.push_back(reader.integer<uint32_t>());
    if (out.cpus.back() > kMaxCpu) reader.refuse("a CPU number is above 65535");
  }
}

}  // namespace

const char* parseSpawnOrder(std::span<const char> payload, SpawnOrder& out, size_t* errorOffset) {
  out.strings = std::unique_ptr<char[]>(new char[payload.size() + 1]);
  Reader reader(payload, out.strings.get());
  out.leaseMs = reader.integer<uint32_t>();
  out.outputCredit = reader.integer<uint64_t>();
  out.runtimeDirectory = reader.string();
  const uint32_t ranks = reader.count("there are more ranks than bytes");
  for (uint32_t i = 0; i < ranks && reader.error() == nullptr; ++i) readRank(reader, out.ranks.emplace_back());
  if (!reader.atEnd()) reader.refuse("bytes follow its end");
  *errorOffset = reader.offset();
  return reader.error();
}

}  // namespace ncclrun::guardian
