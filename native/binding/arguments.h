// Reading arguments. TypeScript has checked them; what is wrong nevertheless throws a TypeError that names the
// argument.
#pragma once
#include <napi.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ncclrun::binding {

inline Napi::TypeError wrongArgument(Napi::Env env, const char* name, const char* wanted) {
  return Napi::TypeError::New(env, std::string(name) + " is not " + wanted);
}

template <typename Integer>
Integer integerArgument(const Napi::Value& value, const char* name) {
  double number = NAN;
  napi_get_value_double(value.Env(), value, &number);
  constexpr double kLimit =
      sizeof(Integer) < 8 ? static_cast<double>(std::numeric_limits<Integer>::max()) : 9007199254740991.0;
  if (!(number >= static_cast<double>(std::numeric_limits<Integer>::min()) && number <= kLimit &&
        static_cast<double>(static_cast<Integer>(number)) == number)) {
    throw wrongArgument(value.Env(), name, "a whole number in range");
  }
  return static_cast<Integer>(number);
}

inline std::string stringArgument(const Napi::Value& value, const char* name) {
  if (!value.IsString()) throw wrongArgument(value.Env(), name, "a string");
  return value.As<Napi::String>().Utf8Value();
}

inline std::vector<std::string> stringsArgument(const Napi::Value& value, const char* name) {
  if (!value.IsArray()) throw wrongArgument(value.Env(), name, "an array of strings");
  std::vector<std::string> strings;
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i) strings.push_back(stringArgument(array.Get(i), name));
  return strings;
}

// The words of a command line: at least one.
inline std::vector<std::string> wordsArgument(const Napi::Value& value, const char* name) {
  std::vector<std::string> words = stringsArgument(value, name);
  if (words.empty()) throw wrongArgument(value.Env(), name, "an array of strings with a first one");
  return words;
}

// The bytes of any view of an ArrayBuffer. Valid while the view is referenced.
inline std::span<uint8_t> viewArgument(const Napi::Value& value, const char* name) {
  // In the order of napi_typedarray_type and, last, of what node-addon-api does not know yet: Float16Array.
  constexpr size_t kElementBytes[] = {1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 2};
  void* data = nullptr;
  size_t length = 0;
  napi_typedarray_type type = napi_uint8_array;
  if (napi_get_typedarray_info(value.Env(), value, &type, &length, &data, nullptr, nullptr) == napi_ok &&
      static_cast<size_t>(type) < std::size(kElementBytes))
    return {static_cast<uint8_t*>(data), length * kElementBytes[type]};
  if (value.IsDataView()) {
    const auto view = value.As<Napi::DataView>();
    return {static_cast<uint8_t*>(view.Data()), view.ByteLength()};
  }
  throw wrongArgument(value.Env(), name, "a typed array or DataView");
}

// Objects of ours in JavaScript: an External that holds a shared_ptr and carries the type's tag (T::kTag), so that
// another kind of object, or another addon's, is refused.
template <typename T>
Napi::Value wrapObject(Napi::Env env, std::shared_ptr<T> object) {
  auto external = Napi::External<std::shared_ptr<T>>::New(env, new std::shared_ptr<T>(std::move(object)),
                                                          [](Napi::Env, std::shared_ptr<T>* held) { delete held; });
  external.TypeTag(&T::kTag);
  return external;
}

template <typename T>
std::shared_ptr<T> objectArgument(const Napi::Value& value, const char* name) {
  if (value.IsExternal()) {
    const auto external = value.As<Napi::External<std::shared_ptr<T>>>();
    if (external.CheckTypeTag(&T::kTag)) return *external.Data();
  }
  throw wrongArgument(value.Env(), name, T::kName);
}

}  // namespace ncclrun::binding
