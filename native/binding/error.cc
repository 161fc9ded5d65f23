#include "binding/error.h"

#include <cstring>

#include "base/limits.h"

namespace ncclrun::binding {
namespace {

Napi::Error named(Napi::Env env, const std::string& sentence, Napi::Value code) {
  Napi::Error error = Napi::Error::New(env, sentence);
  error.Set("name", Napi::String::New(env, "NativeError"));
  error.Set("code", code);
  return error;
}

}  // namespace

Napi::Error systemError(Napi::Env env, int errorNumber, const std::string& what) {
  const char* name = strerrorname_np(errorNumber);
  const std::string code = name != nullptr ? name : std::to_string(errorNumber);
  const std::string reason = std::string(std::strerror(errorNumber)) + " (" + code + ")";
  return named(env, what + ": " + reason + limitBehind(errorNumber), Napi::String::New(env, code));
}

Napi::Error ncclError(Napi::Env env, ncclResult_t result, const std::string& sentence) {
  return named(env, sentence, Napi::Number::New(env, result));
}

}  // namespace ncclrun::binding
