#include "net/plugin/adapt.h"

#include <climits>
#include <utility>

#include "nccl.h"
#include "net/plugin/adapt_table.h"

namespace ncclrun::net::plugin {
namespace {

template <int V>
class Adapted final : public AdaptedTable<V, abi::Table<V>, Calls> {
 public:
  using AdaptedTable<V, abi::Table<V>, Calls>::AdaptedTable;

  std::string missing() const override {
    const auto& t = *this->table_;
    const std::pair<bool, const char*> members[] = {
        {t.init != nullptr, "init"},           {t.devices != nullptr, "devices"},
        {t.listen != nullptr, "listen"},       {t.getProperties != nullptr, "getProperties"},
        {t.connect != nullptr, "connect"},     {t.accept != nullptr, "accept"},
        {t.regMr != nullptr, "regMr"},         {t.deregMr != nullptr, "deregMr"},
        {t.isend != nullptr, "isend"},         {t.irecv != nullptr, "irecv"},
        {t.iflush != nullptr, "iflush"},       {t.test != nullptr, "test"},
        {t.closeSend != nullptr, "closeSend"}, {t.closeRecv != nullptr, "closeRecv"},
        {this->hasFinalize(), "finalize"},     {t.closeListen != nullptr, "closeListen"}};
    return this->firstMissing(members);
  }

  int init(void** context, [[maybe_unused]] uint64_t communicatorId, abi::Log log,
           [[maybe_unused]] abi::Profiler profiler) override {
    *context = nullptr;
    if constexpr (V <= 9) return this->table_->init(log);
    if constexpr (V == 10) return this->table_->init(log, profiler);
    if constexpr (V >= 11) return this->table_->init(context, communicatorId, &config_, log, profiler);
  }

  int connect([[maybe_unused]] void* context, int device, void* handle, void** sender,
              [[maybe_unused]] abi::DeviceHandle** driver) override {
    if constexpr (V == 6) return this->table_->connect(device, handle, sender);
    if constexpr (V >= 7 && V <= 9) return this->table_->connect(device, handle, sender, driver);
    if constexpr (V == 10) return this->table_->connect(device, &config_, handle, sender, driver);
    if constexpr (V >= 11) return this->table_->connect(context, device, handle, sender, driver);
  }

  int accept(void* listener, void** receiver, [[maybe_unused]] abi::DeviceHandle** driver) override {
    if constexpr (V == 6) return this->table_->accept(listener, receiver);
    if constexpr (V >= 7) return this->table_->accept(listener, receiver, driver);
  }

  int isend(void* comm, void* data, size_t bytes, int tag, void* registration, void** request) override {
    if (!std::in_range<abi::MessageSize<V>>(bytes)) return ncclInvalidArgument;
    const auto size = static_cast<abi::MessageSize<V>>(bytes);
    if constexpr (V <= 9) return this->table_->isend(comm, data, size, tag, registration, request);
    if constexpr (V >= 10) return this->table_->isend(comm, data, size, tag, registration, nullptr, request);
  }

  int irecv(void* comm, int count, void** data, size_t* sizes, int* tags, void** registrations,
            void** request) override {
    // A message never has more bytes than the version can express, so a capacity may be cut to that.
    abi::MessageSize<V> capacities[kMaxReceives];
    for (int i = 0; i < count; i++) {
      const size_t max = std::in_range<abi::MessageSize<V>>(sizes[i]) ? sizes[i] : size_t(INT_MAX);
      capacities[i] = static_cast<abi::MessageSize<V>>(max);
    }
    [[maybe_unused]] void* profilers[kMaxReceives] = {};
    if constexpr (V <= 9) return this->table_->irecv(comm, count, data, capacities, tags, registrations, request);
    if constexpr (V >= 10)
      return this->table_->irecv(comm, count, data, capacities, tags, registrations, profilers, request);
  }

  int iflush(void* comm, int count, void** data, int* sizes, void** registrations, void** request) override {
    return this->table_->iflush(comm, count, data, sizes, registrations, request);
  }
  int test(void* request, int* done, int* sizes) override { return this->table_->test(request, done, sizes); }

  int closeSend(void* comm) override { return this->table_->closeSend(comm); }
  int closeRecv(void* comm) override { return this->table_->closeRecv(comm); }
  int closeListen(void* comm) override { return this->table_->closeListen(comm); }

 private:
  abi::Config config_{abi::kNoTrafficClass};  // plugins may keep its address
};

template <int V>
std::unique_ptr<Calls> adaptFrom(int version, void* table) {
  if (version == V) return std::make_unique<Adapted<V>>(static_cast<abi::Table<V>*>(table));
  if constexpr (V < abi::kNewest) return adaptFrom<V + 1>(version, table);
  return nullptr;
}

}  // namespace

std::unique_ptr<Calls> adapt(int version, void* table) { return adaptFrom<abi::kOldest>(version, table); }

}  // namespace ncclrun::net::plugin
