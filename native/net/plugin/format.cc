#include "net/plugin/format.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/descriptor.h"

namespace ncclrun::net::plugin {
namespace {

constexpr size_t kMaxLine = 4096;
constexpr size_t kMaxString = 1024;
constexpr uintptr_t kPage = 4096;
constexpr int kMaxWidth = 256;

// Reads memory that may not be there: the kernel copies it through a pipe, and reports EFAULT where we would crash.
class Reader {
 public:
  std::string read(const char* from, size_t max) {
    std::string text;
    if (from == nullptr) return "(null)";
    if (!open()) return "(unreadable)";
    max = std::min(max, kMaxString);
    while (text.size() < max) {
      const auto at = reinterpret_cast<uintptr_t>(from) + text.size();
      std::array<char, kMaxString> piece;
      const size_t bytes = std::min<size_t>(max - text.size(), kPage - at % kPage);
      const long copied = syscall(SYS_write, in_.get(), at, bytes);
      if (copied <= 0) return text.empty() ? "(unreadable)" : text;
      const long got = syscall(SYS_read, out_.get(), piece.data(), size_t(copied));
      if (got <= 0) return text;
      const size_t length = strnlen(piece.data(), size_t(got));
      text.append(piece.data(), length);
      if (length < size_t(got)) break;
    }
    return text;
  }

 private:
  bool open() {
    if (in_.valid()) return true;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    out_.reset(ends[0]);
    in_.reset(ends[1]);
    return true;
  }

  Descriptor in_, out_;
};

// What stands between % and the conversion's letter.
struct Conversion {
  std::string flags;
  int width = 0;
  int precision = -1;
  std::string length;
  char letter = '\0';
};

class Formatter {
 public:
  Formatter(const char* format, va_list arguments) : at_(format) { va_copy(arguments_, arguments); }
  ~Formatter() { va_end(arguments_); }
  Formatter(const Formatter&) = delete;
  Formatter& operator=(const Formatter&) = delete;

  std::string run() {
    const int error = errno;  // for %m
    while (*at_ != '\0' && line_.size() < kMaxLine) {
      if (*at_ != '%') {
        line_ += *at_++;
        continue;
      }
      const char* const start = at_++;
      const Conversion conversion = parse();
      // After an unknown conversion nobody knows which argument is the next: the rest stays as it is.
      if (convert(conversion, error)) continue;
      line_ += start;
      break;
    }
    errno = error;
    if (line_.size() > kMaxLine) line_.resize(kMaxLine);
    return line_;
  }

 private:
  Conversion parse() {
    Conversion made;
    while (*at_ != '\0' && std::strchr("-+ #0'", *at_) != nullptr) made.flags += *at_++;
    made.width = number();
    if (made.width < 0) {
      made.flags += '-';
      made.width = -made.width;
    }
    made.width = std::min(made.width, kMaxWidth);
    if (*at_ == '.') {
      at_++;
      made.precision = std::min(number(), int(kMaxString));
    }
    while (*at_ != '\0' && std::strchr("hlLqjzt", *at_) != nullptr) made.length += *at_++;
    if (*at_ != '\0') made.letter = *at_++;
    return made;
  }

  // Digits or *; bounded, so that garbage does not overflow.
  int number() {
    if (*at_ == '*') {
      at_++;
      return std::clamp(va_arg(arguments_, int), -kMaxWidth, int(kMaxString));
    }
    int value = 0;
    for (; *at_ >= '0' && *at_ <= '9'; at_++) value = std::min(value * 10 + (*at_ - '0'), int(kMaxString));
    return value;
  }

  bool convert(const Conversion& c, int error) {
    switch (c.letter) {
      case '%':
        line_ += '%';
        return true;
      case 'd':
      case 'i':
        put(c, "ll", signedInteger(c.length));
        return true;
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        put(c, "ll", unsignedInteger(c.length));
        return true;
      case 'c':
        put(c, "", va_arg(arguments_, int));
        return true;
      case 'p':
        put(c, "", va_arg(arguments_, void*));
        return true;
      case 's': {
        if (!c.length.empty()) return false;  // wide characters
        const size_t max = c.precision < 0 ? kMaxString : size_t(c.precision);
        put(c, "", reader_.read(va_arg(arguments_, const char*), max).c_str());
        return true;
      }
      case 'm':
        put(c, "", std::strerror(error), 's');
        return true;
      case 'n':
        va_arg(arguments_, void*);
        return true;
      default:
        break;
    }
    if (c.letter == '\0' || std::strchr("eEfFgGaA", c.letter) == nullptr) return false;
    if (c.length == "L") {
      put(c, "L", va_arg(arguments_, long double));
    } else {
      put(c, "", va_arg(arguments_, double));
    }
    return true;
  }

  long long signedInteger(const std::string& length) {
    if (length == "hh") return static_cast<signed char>(va_arg(arguments_, int));
    if (length == "h") return static_cast<short>(va_arg(arguments_, int));
    if (length.empty()) return va_arg(arguments_, int);
    return va_arg(arguments_, long long);  // l, ll, q, j, z, t: 64 bits each
  }
  unsigned long long unsignedInteger(const std::string& length) {
    if (length == "hh") return static_cast<unsigned char>(va_arg(arguments_, unsigned));
    if (length == "h") return static_cast<unsigned short>(va_arg(arguments_, unsigned));
    if (length.empty()) return va_arg(arguments_, unsigned);
    return va_arg(arguments_, unsigned long long);
  }

  template <typename Value>
  void put(const Conversion& c, const char* length, Value value, char letter = '\0') {
    std::string one = "%" + c.flags;
    if (c.width > 0) one += std::to_string(c.width);
    if (c.precision >= 0) one += "." + std::to_string(c.precision);
    one += length;
    one += letter == '\0' ? c.letter : letter;
    std::array<char, kMaxString + kMaxWidth> text;
    const int bytes = std::snprintf(text.data(), text.size(), one.c_str(), value);
    if (bytes > 0) line_.append(text.data(), std::min(size_t(bytes), text.size() - 1));
  }

  const char* at_;
  va_list arguments_;
  std::string line_;
  Reader reader_;
};

}  // namespace

std::string formatGuarded(const char* format, va_list arguments) {
  return format == nullptr ? std::string() : Formatter(format, arguments).run();
}

}  // namespace ncclrun::net::plugin
