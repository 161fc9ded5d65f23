#include "net/plugin/collective_adapt.h"

#include <utility>

#include "nccl.h"
#include "net/plugin/adapt_table.h"

namespace ncclrun::net::plugin {
namespace {

template <int V>
class AdaptedCollective final : public AdaptedTable<V, abi::CollectiveTable<V>, CollectiveCalls> {
 public:
  using AdaptedTable<V, abi::CollectiveTable<V>, CollectiveCalls>::AdaptedTable;

  std::string missing() const override {
    const auto& t = *this->table_;
    const std::pair<bool, const char*> members[] = {{t.init != nullptr, "init"},
                                                    {t.devices != nullptr, "devices"},
                                                    {t.getProperties != nullptr, "getProperties"},
                                                    {t.listen != nullptr, "listen"},
                                                    {t.connect != nullptr, "connect"},
                                                    {t.reduceSupport != nullptr, "reduceSupport"},
                                                    {t.regMr != nullptr, "regMr"},
                                                    {t.deregMr != nullptr, "deregMr"},
                                                    {t.iallreduce != nullptr, "iallreduce"},
                                                    {t.iflush != nullptr, "iflush"},
                                                    {t.test != nullptr, "test"},
                                                    {t.closeColl != nullptr, "closeColl"},
                                                    {t.closeListen != nullptr, "closeListen"},
                                                    {this->hasFinalize(), "finalize"}};
    return this->firstMissing(members);
  }

  int init(void** context, [[maybe_unused]] uint64_t communicatorId, abi::Log log, abi::Profiler) override {
    *context = nullptr;
    if constexpr (V <= 10) return this->table_->init(log);
    if constexpr (V >= 11) return this->table_->init(context, communicatorId, log);
  }

  int connect(void** handles, int members, int rank, void* listener, void** comm) override {
    return this->table_->connect(handles, members, rank, listener, comm);
  }
  int reduceSupport(int type, int op, int* supported) override {
    return this->table_->reduceSupport(type, op, supported);
  }

  int iallreduce(void* comm, void* send, void* receive, size_t count, int type, int op, void* sendRegistration,
                 void* receiveRegistration, void** request) override {
    if (!std::in_range<abi::MessageSize<V>>(count)) return ncclInvalidArgument;
    return this->table_->iallreduce(comm, send, receive, static_cast<abi::MessageSize<V>>(count), type, op,
                                    sendRegistration, receiveRegistration, request);
  }

  bool hasGather() const override {
    if constexpr (V >= 8)
      return this->table_->gathering.iallgather != nullptr && this->table_->gathering.ireducescatter != nullptr;
    return false;
  }
  int iallgather([[maybe_unused]] void* comm, [[maybe_unused]] void* send, [[maybe_unused]] const NewestPart& receive,
                 [[maybe_unused]] const GatherWindow& window, [[maybe_unused]] void* sendRegistration,
                 [[maybe_unused]] void** request) override {
    if constexpr (V >= 8) {
      abi::Part<V> part{};
      if (!copyPart(receive, part)) return ncclInvalidArgument;
      return this->table_->gathering.iallgather(comm, send, 1, &part, window.bytesPerRank, window.offset, window.bytes,
                                                sendRegistration, request);
    }
    return ncclInvalidUsage;
  }
  int ireducescatter([[maybe_unused]] void* comm, [[maybe_unused]] const NewestPart& send,
                     [[maybe_unused]] void* receive, [[maybe_unused]] const GatherWindow& window,
                     [[maybe_unused]] int type, [[maybe_unused]] int op, [[maybe_unused]] void* receiveRegistration,
                     [[maybe_unused]] void** request) override {
    if constexpr (V >= 8) {
      abi::Part<V> part{};
      if (!copyPart(send, part)) return ncclInvalidArgument;
      return this->table_->gathering.ireducescatter(comm, 1, &part, receive, window.bytesPerRank, window.offset,
                                                    window.bytes, type, op, receiveRegistration, request);
    }
    return ncclInvalidUsage;
  }

  int iflush(void* comm, void* data, int bytes, void* registration, void** request) override {
    return this->table_->iflush(comm, data, bytes, registration, request);
  }
  int test(void* request, int* done, int* bytes) override { return this->table_->test(request, done, bytes); }

  int closeColl(void* comm) override { return this->table_->closeColl(comm); }
  int closeListen(void* listener) override { return this->table_->closeListen(listener); }

 private:
  static bool copyPart(const NewestPart& from, abi::Part<V>& to) {
    if (!std::in_range<decltype(to.bytes)>(from.bytes)) return false;
    to = {from.registration, from.address, static_cast<decltype(to.bytes)>(from.bytes)};
    return true;
  }
};

template <int V>
std::unique_ptr<CollectiveCalls> adaptCollectiveFrom(int version, void* table) {
  if (version == V) return std::make_unique<AdaptedCollective<V>>(static_cast<abi::CollectiveTable<V>*>(table));
  if constexpr (V < abi::kNewest) return adaptCollectiveFrom<V + 1>(version, table);
  return nullptr;
}

}  // namespace

std::unique_ptr<CollectiveCalls> adaptCollective(int version, void* table) {
  return adaptCollectiveFrom<abi::kOldest>(version, table);
}

}  // namespace ncclrun::net::plugin
