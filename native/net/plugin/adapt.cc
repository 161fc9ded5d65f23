#include "net/plugin/adapt.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "nccl.h"

namespace ncclrun::net::plugin {
namespace {

constexpr size_t kMessageBytesBefore9 = size_t(1) << 30;
constexpr size_t kCollectiveBytesBefore9 = size_t(1) << 29;

// What every version has.
template <typename Properties>
void copyCommon(const Properties& from, NewestProperties& out) {
  out.v9.name = from.name;
  out.v9.pciPath = from.pciPath;
  out.v9.guid = from.guid;
  out.v9.ptrSupport = from.ptrSupport;
  out.v9.speed = from.speed;
  out.v9.port = from.port;
  out.v9.latency = from.latency;
  out.v9.maxComms = from.maxComms;
  out.v9.maxRecvs = from.maxRecvs;
}

template <typename Properties>
void copyDriver(const Properties& from, NewestProperties& out) {
  out.v9.netDeviceType = from.netDeviceType;
  out.v9.netDeviceVersion = from.netDeviceVersion;
}

template <int kMembers>
void copyOfVersion9(const abi::PropertiesWithMembers<kMembers>& from, NewestProperties& out) {
  copyCommon(from, out);
  copyDriver(from, out);
  out.v9.regIsGlobal = from.regIsGlobal;
  out.v9.forceFlush = from.forceFlush;
  out.v9.members.count = std::clamp(from.members.count, 0, kMembers);
  std::copy_n(from.members.devices, out.v9.members.count, out.v9.members.devices);
  out.v9.maxP2pBytes = from.maxP2pBytes;
  out.v9.maxCollBytes = from.maxCollBytes;
}

// `out` is zero but for what older versions do not have.
void copyProperties(const abi::PropertiesV6& from, NewestProperties& out) { copyCommon(from, out); }
void copyProperties(const abi::PropertiesV7& from, NewestProperties& out) {
  copyCommon(from.v6, out);
  copyDriver(from, out);
}
void copyProperties(const abi::PropertiesV8& from, NewestProperties& out) {
  copyCommon(from, out);
  copyDriver(from, out);
  out.v9.regIsGlobal = from.regIsGlobal;
}
void copyProperties(const abi::PropertiesV9& from, NewestProperties& out) { copyOfVersion9(from, out); }
void copyProperties(const abi::PropertiesV11& from, NewestProperties& out) {
  copyOfVersion9(from.v9, out);
  out.maxMultiRequestSize = from.maxMultiRequestSize;
}
void copyProperties(const abi::PropertiesV12& from, NewestProperties& out) { out = from; }

NewestProperties defaults(int device) {
  NewestProperties made{};
  made.v9.members.count = 1;
  made.v9.members.devices[0] = device;
  made.v9.maxP2pBytes = kMessageBytesBefore9;
  made.v9.maxCollBytes = kCollectiveBytesBefore9;
  made.maxMultiRequestSize = 1;
  made.railId = -1;
  made.planeId = -1;
  return made;
}

template <int V>
class Adapted final : public Calls {
 public:
  explicit Adapted(abi::Table<V>* table) : table_(table) {}

  int version() const override { return V; }
  const char* name() const override { return table_->name; }

  std::string missing() const override {
    const auto& t = *table_;
    const std::pair<bool, const char*> members[] = {
        {t.init != nullptr, "init"},           {t.devices != nullptr, "devices"},
        {t.listen != nullptr, "listen"},       {t.getProperties != nullptr, "getProperties"},
        {t.connect != nullptr, "connect"},     {t.accept != nullptr, "accept"},
        {t.regMr != nullptr, "regMr"},         {t.deregMr != nullptr, "deregMr"},
        {t.isend != nullptr, "isend"},         {t.irecv != nullptr, "irecv"},
        {t.iflush != nullptr, "iflush"},       {t.test != nullptr, "test"},
        {t.closeSend != nullptr, "closeSend"}, {t.closeRecv != nullptr, "closeRecv"},
        {hasFinalize(), "finalize"},           {t.closeListen != nullptr, "closeListen"}};
    for (const auto& [there, what] : members) {
      if (!there) return what;
    }
    return {};
  }

  int init(void** context, [[maybe_unused]] uint64_t communicatorId, abi::Log log,
           [[maybe_unused]] abi::Profiler profiler) override {
    *context = nullptr;
    if constexpr (V <= 9) return table_->init(log);
    if constexpr (V == 10) return table_->init(log, profiler);
    if constexpr (V >= 11) return table_->init(context, communicatorId, &config_, log, profiler);
  }

  int devices(int* count) override { return table_->devices(count); }

  int getProperties(int device, NewestProperties* out) override {
    abi::Properties<V> properties{};  // plugins leave members unset
    const int result = table_->getProperties(device, &properties);
    *out = defaults(device);
    copyProperties(properties, *out);
    return result;
  }

  int finalize([[maybe_unused]] void* context) override {
    if constexpr (V >= 11) return table_->tail.finalize(context);
    return ncclSuccess;
  }

  int listen([[maybe_unused]] void* context, int device, void* handle, void** listener) override {
    if constexpr (V <= 10) return table_->listen(device, handle, listener);
    if constexpr (V >= 11) return table_->listen(context, device, handle, listener);
  }

  int connect([[maybe_unused]] void* context, int device, void* handle, void** sender,
              [[maybe_unused]] abi::DeviceHandle** driver) override {
    if constexpr (V == 6) return table_->connect(device, handle, sender);
    if constexpr (V >= 7 && V <= 9) return table_->connect(device, handle, sender, driver);
    if constexpr (V == 10) return table_->connect(device, &config_, handle, sender, driver);
    if constexpr (V >= 11) return table_->connect(context, device, handle, sender, driver);
  }

  int accept(void* listener, void** receiver, [[maybe_unused]] abi::DeviceHandle** driver) override {
    if constexpr (V == 6) return table_->accept(listener, receiver);
    if constexpr (V >= 7) return table_->accept(listener, receiver, driver);
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

  int isend(void* comm, void* data, size_t bytes, int tag, void* registration, void** request) override {
    if (!std::in_range<abi::MessageSize<V>>(bytes)) return ncclInvalidArgument;
    const auto size = static_cast<abi::MessageSize<V>>(bytes);
    if constexpr (V <= 9) return table_->isend(comm, data, size, tag, registration, request);
    if constexpr (V >= 10) return table_->isend(comm, data, size, tag, registration, nullptr, request);
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
    if constexpr (V <= 9) return table_->irecv(comm, count, data, capacities, tags, registrations, request);
    if constexpr (V >= 10) return table_->irecv(comm, count, data, capacities, tags, registrations, profilers, request);
  }

  int iflush(void* comm, int count, void** data, int* sizes, void** registrations, void** request) override {
    return table_->iflush(comm, count, data, sizes, registrations, request);
  }
  int test(void* request, int* done, int* sizes) override { return table_->test(request, done, sizes); }

  int closeSend(void* comm) override { return table_->closeSend(comm); }
  int closeRecv(void* comm) override { return table_->closeRecv(comm); }
  int closeListen(void* comm) override { return table_->closeListen(comm); }

 private:
  bool hasFinalize() const {
    if constexpr (V >= 11) return table_->tail.finalize != nullptr;
    return true;
  }

  abi::Table<V>* const table_;
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
