// What the adapters of both tables have in common. Table<V> is the binary interface's; Base is Calls or
// CollectiveCalls.
#pragma once
#include <utility>

#include "nccl.h"
#include "net/plugin/properties.h"
#include "net/plugin/table_calls.h"

namespace ncclrun::net::plugin {

template <int V, typename Table, typename Base>
class AdaptedTable : public Base {
 public:
  explicit AdaptedTable(Table* table) : table_(table) {}

  int version() const override { return V; }
  const char* name() const override { return table_->name; }
  std::string missingAtStart() const override {
    return table_->init == nullptr ? "init" : table_->devices == nullptr ? "devices" : "";
  }

  int devices(int* count) override { return table_->devices(count); }
  int getProperties(int device, NewestProperties* out) override {
    abi::Properties<V> properties{};  // plugins leave members unset
    const int result = table_->getProperties(device, &properties);
    *out = defaultProperties(device);
    copyProperties(properties, *out);
    return result;
  }
  // A plugin without devices may have none.
  int finalize([[maybe_unused]] void* context) override {
    if constexpr (V >= 11) {
      if (hasFinalize()) return table_->tail.finalize(context);
    }
    return ncclSuccess;
  }

  int listen([[maybe_unused]] void* context, int device, void* handle, void** listener) override {
    if constexpr (V <= 10) return table_->listen(device, handle, listener);
    if constexpr (V >= 11) return table_->listen(context, device, handle, listener);
  }

  int regMr(void* comm, void* data, size_t bytes, int type, void** registration) override {
    if (!std::in_range<abi::RegionSize<V>>(bytes)) return ncclInvalidArgument;
    return table_->regMr(comm, data, static_cast<abi::RegionSize<V>>(bytes), type, registration);
  }
  bool hasDmaBuf() const override { return table_->regMrDmaBuf != nullptr; }
  int regMrDmaBuf(void* comm, void* data, size_t bytes, int type, uint64_t offset, int descriptor,
                  void** registration) override {
    return table_->regMrDmaBuf(comm, data, bytes, type, offset, descriptor, registration);
  }
  int deregMr(void* comm, void* registration) override { return table_->deregMr(comm, registration); }

 protected:
  bool hasFinalize() const {
    if constexpr (V >= 11) return table_->tail.finalize != nullptr;
    return true;
  }
  // The first member that is not there; empty: none.
  template <size_t kMembers>
  static std::string firstMissing(const std::pair<bool, const char*> (&members)[kMembers]) {
    for (const auto& [there, what] : members) {
      if (!there) return what;
    }
    return {};
  }

  // Calls go through the plugin's own table, whose members it may replace during init().
  Table* const table_;
};

}  // namespace ncclrun::net::plugin
