#include "aggregator/striped_group.h"

#include <array>
#include <utility>

namespace ncclrun::aggregator {
namespace {

class StripedGroup final : public net::CollectiveGroup {
 public:
  explicit StripedGroup(std::vector<std::unique_ptr<net::CollectiveGroup>> groups) : groups_(std::move(groups)) {}

  // Sockets register nothing, so a registration of one is good for all.
  Status registerMemory(const net::Region& region, net::Registration& out) override {
    return groups_.front()->registerMemory(region, out);
  }
  Status deregisterMemory(net::Registration registration) override {
    return groups_.front()->deregisterMemory(registration);
  }

  Status iallreduce(const net::RegisteredBuffer& send, const net::RegisteredBuffer& receive, size_t count,
                    net::Reduction reduction, net::Request*& out) override {
    out = nullptr;
    if (next_ - oldest_ == net::kMaxCollectives) return {};
    Collective& collective = at(next_);
    collective = {.group = groups_[next_ % groups_.size()].get()};
    NCCLRUN_TRY(collective.group->iallreduce(send, receive, count, reduction, collective.request));
    if (collective.request == nullptr) return {};
    out = reinterpret_cast<net::Request*>(&collective);
    next_++;
    return {};
  }
  Status iallgather(const net::RegisteredBuffer& send, const net::RegisteredBuffer& receive, const net::Window& window,
                    net::Request*& out) override {
    return groups_.front()->iallgather(send, receive, window, out);
  }
  Status ireducescatter(const net::RegisteredBuffer& send, const net::RegisteredBuffer& receive,
                        const net::Window& window, net::Reduction reduction, net::Request*& out) override {
    return groups_.front()->ireducescatter(send, receive, window, reduction, out);
  }
  Status iflush(const net::RegisteredBuffer& buffer, size_t bytes, net::Request*& out) override {
    return groups_.front()->iflush(buffer, bytes, out);
  }

  // A test moves the collectives of its own aggregator alone, so all are tested. Results that came before a failure are
  // right.
  Status test(net::Request* request, bool& done) override {
    Status failure;
    for (uint64_t number = oldest_; number < next_ && failure.ok(); number++) {
      Collective& collective = at(number);
      if (!collective.isDone) failure = collective.group->test(collective.request, collective.isDone);
    }
    const Collective& oldest = at(oldest_);
    done = request == reinterpret_cast<const net::Request*>(&oldest) && oldest.isDone;
    if (!done) return failure;
    oldest_++;
    return {};
  }

 private:
  struct Collective {
    net::CollectiveGroup* group = nullptr;
    net::Request* request = nullptr;
    bool isDone = false;  // and not reported yet
  };

  Collective& at(uint64_t number) { return collectives_[number % net::kMaxCollectives]; }

  const std::vector<std::unique_ptr<net::CollectiveGroup>> groups_;
  std::array<Collective, net::kMaxCollectives> collectives_;
  uint64_t next_ = 0, oldest_ = 0;  // numbers of the next collective, and of the oldest that test() has not reported
};

}  // namespace

std::unique_ptr<net::CollectiveGroup> makeStripedGroup(std::vector<std::unique_ptr<net::CollectiveGroup>> groups) {
  if (groups.size() == 1) return std::move(groups.front());
  return std::make_unique<StripedGroup>(std::move(groups));
}

}  // namespace ncclrun::aggregator
