// The ranks' output on its way to the user: a prefix before every line, at the speed of memory.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "binding/arguments.h"
#include "binding/error.h"
#include "binding/module.h"

namespace ncclrun::binding {
namespace {

size_t countPrefixes(std::span<const uint8_t> bytes, bool atLineStart) {
  size_t count = atLineStart ? 1 : 0;
  const uint8_t* const end = bytes.data() + bytes.size();
  for (const uint8_t* at = bytes.data(); at < end; ++at) {
    at = static_cast<const uint8_t*>(memchr(at, '\n', static_cast<size_t>(end - at)));
    if (at == nullptr || at + 1 == end) break;
    ++count;
  }
  return count;
}

void copyPrefixed(uint8_t* target, std::span<const uint8_t> bytes, const std::string& prefix, bool atLineStart) {
  const uint8_t* const end = bytes.data() + bytes.size();
  for (const uint8_t* line = bytes.data(); line < end;) {
    if (atLineStart) target = std::copy(prefix.begin(), prefix.end(), target);
    atLineStart = true;
    const void* newline = memchr(line, '\n', static_cast<size_t>(end - line));
    const uint8_t* next = newline == nullptr ? end : static_cast<const uint8_t*>(newline) + 1;
    target = std::copy(line, next, target);
    line = next;
  }
}

}  // namespace

Napi::Value prefixLines(const Napi::CallbackInfo& call) {
  const std::span<uint8_t> target = viewArgument(call[0], "target");
  const auto offset = integerArgument<size_t>(call[1], "offset");
  const std::span<uint8_t> bytes = viewArgument(call[2], "bytes");
  const std::string prefix = stringArgument(call[3], "prefix");
  const bool atLineStart = call[4].ToBoolean();
  if (bytes.empty()) return Napi::Number::New(call.Env(), 0);
  const size_t length = bytes.size() + (prefix.empty() ? 0 : countPrefixes(bytes, atLineStart) * prefix.size());
  if (offset <= target.size() && length <= target.size() - offset) {
    copyPrefixed(target.data() + offset, bytes, prefix, atLineStart);
  }
  return Napi::Number::New(call.Env(), static_cast<double>(length));
}

Napi::Value widenPipe(const Napi::CallbackInfo& call) {
  fcntl(integerArgument<int>(call[0], "descriptor"), F_SETPIPE_SZ, integerArgument<int>(call[1], "bytes"));
  return call.Env().Undefined();
}

Napi::Value replaceDescriptor(const Napi::CallbackInfo& call) {
  const auto descriptor = integerArgument<int>(call[0], "descriptor");
  if (dup2(integerArgument<int>(call[1], "by"), descriptor) < 0)
    throw systemError(call.Env(), errno, "cannot replace descriptor " + std::to_string(descriptor));
  return call.Env().Undefined();
}

}  // namespace ncclrun::binding
