#include "stack/symbolise.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace ncclrun::stack {
namespace {

// Longer ones are not given to the demangler, which takes memory for them.
constexpr size_t kMaxMangled = 2048;

struct Free {
  void operator()(char* memory) const { free(memory); }
};

}  // namespace

std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z") || name.size() > kMaxMangled) return name;
  int status = 0;
  const std::unique_ptr<char, Free> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status));
  return status == 0 && text ? text.get() : name;
}

FoundCode Symboliser::findCode(uint64_t address) {
  const Mapping* mapping = mappingAt(maps_, address);
  if (mapping == nullptr || !mapping->isExecutable) return {};
  const CodePlace place = modules_.placeOf(process_, *mapping, address, memory_);
  return {place.image, place.address, true};
}

void Symboliser::expect(const CodeAddress& address) {
  const FoundCode code = findCode(address.inCall());
  if (code.image != nullptr) expected_[code.image][code.address].push_back(address.inCall());
  const Mapping* mapping = mappingAt(maps_, address.inCall());
  if (mapping != nullptr && mapping->path.empty()) hasMadeCode_ = true;
}

void Symboliser::load() {
  if (hasMadeCode_) made_ = PerfMap::of(process_);
  for (const auto& [image, places] : expected_) {
    std::vector<uint64_t> sorted;
    for (const auto& [place, addresses] : places) sorted.push_back(place);
    const std::vector<Symbol> symbols = image->symbolsAt(sorted);
    size_t index = 0;
    for (const auto& [place, addresses] : places) {
      for (const uint64_t address : addresses) known_[address] = {symbols[index], place};
      ++index;
    }
  }
}

NativeFrame Symboliser::frameOf(const CodeAddress& address) const {
  const uint64_t inCall = address.inCall();
  const Mapping* mapping = mappingAt(maps_, inCall);
  NativeFrame frame;
  if (mapping != nullptr) frame.module = mapping->path;
  const auto known = known_.find(inCall);
  if (known == known_.end()) {
    frame.function = made_.nameAt(inCall);
    frame.offset = mapping == nullptr ? inCall : inCall - mapping->start + mapping->offset;
    return frame;
  }
  const auto& [symbol, place] = known->second;
  frame.function = demangled(symbol.name);
  frame.offset = symbol.name.empty() ? place : place - symbol.address;
  return frame;
}

}  // namespace ncclrun::stack
