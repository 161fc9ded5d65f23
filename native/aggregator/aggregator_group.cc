#include "aggregator/aggregator_group.h"

#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "aggregator/frame_writer.h"
#include "base/clock.h"
#include "base/element.h"
#include "net/socket/connection_state.h"

namespace ncclrun::aggregator {
namespace {

// A caller that has not polled for so long was stopped itself, or was busy: silence is counted anew.
constexpr uint64_t kPollGap = 1'000'000'000;  // ns
constexpr uint64_t kMaxBytes = uint64_t(1) << 40;

class AggregatorGroup final : public net::CollectiveGroup {
 public:
  AggregatorGroup(GroupConnection connection, const FrameReader& reader)
      : connection_(std::move(connection)), reader_(reader), heardAt_(nowNanoseconds()), polledAt_(heardAt_) {}
  ~AggregatorGroup() override {
    connection_.heartbeats.remove(this);
    leave();
  }
  Status start() {
    return connection_.heartbeats.add(this, [this] { beat(); });
  }

  Status registerMemory(const net::Region& region, net::Registration& out) override {
    return net::registerForSockets(region, out);
  }
  Status deregisterMemory(net::Registration) override { return {}; }

  Status iallreduce(const net::RegisteredBuffer& send, const net::RegisteredBuffer& receive, size_t count,
                    net::Reduction reduction, net::Request*& out) override;
  Status iallgather(const net::RegisteredBuffer&, const net::RegisteredBuffer&, const net::Window&,
                    net::Request*& out) override {
    out = nullptr;
    return neitherGathersNorScatters();
  }
  Status ireducescatter(const net::RegisteredBuffer&, const net::RegisteredBuffer&, const net::Window&, net::Reduction,
                        net::Request*& out) override {
    out = nullptr;
    return neitherGathersNorScatters();
  }
  Status iflush(const net::RegisteredBuffer&, size_t, net::Request*& out) override {
    out = nullptr;
    return dead_;
  }
  Status test(net::Request* request, bool& done) override;

 private:
  struct Collective {
    const std::byte* send = nullptr;
    std::byte* receive = nullptr;
    FrameHeader header;     // of its next contribution
    uint64_t received = 0;  // bytes of the result
  };

  Status neitherGathersNorScatters() const {
    return {ncclInvalidUsage, connection_.server + " neither gathers nor scatters"};
  }
  Collective& at(uint32_t sequence) { return collectives_[sequence % net::kMaxCollectives]; }
  Status dead(Status status);
  Status dead(ncclResult_t code, const std::string& why) { return dead(Status{code, connection_.server + ": " + why}); }
  // Moves what can be moved; dead_ says what failed.
  void advance();
  void contribute();
  void beat();
  Status receive();
  Status expectPayload();
  void resultArrived();
  void leave();

  const GroupConnection connection_;
  FrameReader reader_;
  std::mutex writing_;  // of writer_: the thread of heartbeats writes, too
  FrameWriter writer_;
  Status dead_;  // an error: nothing but closing is allowed afterwards
  std::array<Collective, net::kMaxCollectives> collectives_;
  // Sequence numbers: of the next call, of the collective that is contributed, of the one whose result arrives, and of
  // the oldest one that test() has not reported.
  uint32_t next_ = 0, contributing_ = 0, receiving_ = 0, oldest_ = 0;
  uint64_t chunksBegun_ = 0, chunksReceived_ = 0;
  std::vector<char> sentence_;
  uint64_t heardAt_, polledAt_;  // nanoseconds
};

Status AggregatorGroup::iallreduce(const net::RegisteredBuffer& send, const net::RegisteredBuffer& receive,
                                   size_t count, net::Reduction reduction, net::Request*& out) {
  out = nullptr;
  if (!isReducible(reduction))
    return {ncclInvalidUsage, formatSentence("%s does not reduce type %d by operator %d", connection_.server.c_str(),
                                             int(reduction.type), int(reduction.op))};
  if (!dead_.ok()) return dead_;
  const size_t size = elementBytes(reduction.type);
  if (count == 0 || count > kMaxBytes / size)
    return {ncclInvalidArgument,
            formatSentence("%s: a collective has 1 to %llu bytes, not %zu elements of %zu bytes",
                           connection_.server.c_str(), static_cast<unsigned long long>(kMaxBytes), count, size)};
  if (next_ - oldest_ == net::kMaxCollectives) return {};
  Collective& made = at(next_);
  made = {};
  made.send = static_cast<const std::byte*>(send.address);
  made.receive = static_cast<std::byte*>(receive.address);
  made.header.kind = FrameKind::contribution;
  made.header.type = uint8_t(reduction.type);
  made.header.op = uint8_t(reduction.op);
  made.header.sequence = next_++;
  made.header.totalBytes = count * size;
  out = reinterpret_cast<net::Request*>(&made);
  advance();  // test() reports what fails
  return {};
}

// Requests are under way no more: their memory is the caller's again.
Status AggregatorGroup::dead(Status status) {
  std::lock_guard lock(writing_);
  writer_.clear();
  return dead_ = std::move(status);
}

// What is queued goes on, too, where the caller does not poll.
void AggregatorGroup::beat() {
  std::lock_guard lock(writing_);
  if (writer_.isEmpty()) writer_.queue({});
  writer_.flush(connection_.socket.get());
}

// Writes chunks as far as the window allows, from the caller's memory. That the connection has ended is seen when it is
// read.
void AggregatorGroup::contribute() {
  std::lock_guard lock(writing_);
  while (contributing_ != next_ && chunksBegun_ - chunksReceived_ < kWindow) {
    Collective& collective = at(contributing_);
    FrameHeader& header = collective.header;
    header.bytes = chunkBytesAt(header);
    writer_.queue(header, collective.send + header.offset);
    chunksBegun_++;
    header.offset += header.bytes;
    if (header.offset == header.totalBytes) contributing_++;
  }
  writer_.flush(connection_.socket.get());
}

// A header has come: finds memory for its payload.
Status AggregatorGroup::expectPayload() {
  const FrameHeader& header = reader_.header();
  constexpr const char* kUnknown = "it sends what this protocol does not have";
  if (header.magic != kFrameMagic) return dead(ncclInternalError, kUnknown);
  if (header.kind == FrameKind::heartbeat && header.bytes == 0) return {};
  if (header.kind == FrameKind::failed && header.bytes > 0 && header.bytes <= kMaxSentenceBytes) {
    sentence_.resize(header.bytes);
    reader_.expect(reinterpret_cast<std::byte*>(sentence_.data()));
    return {};
  }
  Collective& collective = at(receiving_);
  FrameHeader expected = collective.header;
  expected.kind = FrameKind::result;
  expected.offset = collective.received;
  expected.bytes = chunkBytesAt(expected);
  if (chunksReceived_ == chunksBegun_ || std::memcmp(&header, &expected, sizeof header) != 0)
    return dead(ncclInternalError, kUnknown);
  reader_.expect(collective.receive + collective.received);
  return {};
}

void AggregatorGroup::resultArrived() {
  chunksReceived_++;
  Collective& collective = at(receiving_);
  collective.received += reader_.header().bytes;
  if (collective.received == collective.header.totalBytes) receiving_++;
}

Status AggregatorGroup::receive() {
  for (;;) {
    switch (reader_.step(connection_.socket.get())) {
      case FrameReader::Step::nothing:
        return {};
      case FrameReader::Step::closed:
        return dead(ncclRemoteError, reader_.whyClosed());
      case FrameReader::Step::header:
        NCCLRUN_TRY(expectPayload());
        break;
      case FrameReader::Step::payload:
        if (reader_.header().kind == FrameKind::failed) {
          const Status failure = failureOf(reader_.header(), sentence_);
          return dead(failure.code, failure.sentence);
        }
        resultArrived();
        contribute();
        break;
    }
    heardAt_ = polledAt_;
  }
}

void AggregatorGroup::advance() {
  const uint64_t now = nowNanoseconds();
  if (now - polledAt_ > kPollGap) heardAt_ = now;
  polledAt_ = now;
  contribute();
  if (!receive().ok()) return;
  if (chunksReceived_ == chunksBegun_) heardAt_ = now;
  if (now - heardAt_ > connection_.timeout)
    dead(ncclRemoteError, formatSentence("it has been silent for %.0f s", double(connection_.timeout) / 1e9));
}

Status AggregatorGroup::test(net::Request* request, bool& done) {
  if (dead_.ok()) advance();
  // Results that came before a failure are right.
  const uint32_t sequence = reinterpret_cast<Collective*>(request)->header.sequence;
  done = sequence == oldest_ && receiving_ != oldest_;
  if (!done) return dead_;
  oldest_++;
  return {};
}

// In order, if nothing is under way: else the others must learn that they wait in vain.
void AggregatorGroup::leave() {
  if (!dead_.ok() || receiving_ != next_ || !writer_.isEmpty()) return;
  FrameHeader header;
  header.kind = FrameKind::leave;
  writer_.queue(header);
  writer_.flush(connection_.socket.get());
}

}  // namespace

Status makeAggregatorGroup(GroupConnection connection, const FrameReader& reader,
                           std::unique_ptr<net::CollectiveGroup>& out) {
  auto made = std::make_unique<AggregatorGroup>(std::move(connection), reader);
  NCCLRUN_TRY(made->start());
  out = std::move(made);
  return {};
}

bool isReducible(net::Reduction reduction) {
  return elementBytes(reduction.type) != 0 && size_t(reduction.op) < size_t(ncclNumOps);
}

}  // namespace ncclrun::aggregator
