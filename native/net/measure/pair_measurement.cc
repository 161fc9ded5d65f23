#include "net/measure/pair_measurement.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "base/clock.h"

namespace ncclrun::net {
namespace {

constexpr size_t kAlignment = 4096;
constexpr uint64_t kFootprint = uint64_t(64) << 20;  // of the messages under way, at most, but two messages
constexpr size_t kMaxDepth = 16;
// Round trips: some before those that count, and then as many as fit the time.
constexpr uint64_t kWarmUpRounds = 100;
constexpr uint64_t kMinRounds = 100;
constexpr uint64_t kMaxRounds = 5000;
constexpr uint64_t kLatencyNanoseconds = 300'000'000;
// Bandwidth: messages whose rate says how many count.
constexpr uint64_t kWarmUpBytes = uint64_t(8) << 20;
constexpr uint64_t kMaxWarmUpMessages = 256;
constexpr uint64_t kBandwidthNanoseconds = 200'000'000;
constexpr uint64_t kMaxMessages = 1'000'000;

// How long nothing may happen, beside what a message takes at 100 Mb/s.
constexpr uint64_t kPatienceNanoseconds = 5'000'000'000;
constexpr uint64_t kSlowestNanosecondsPerByte = 80;

constexpr uint64_t kGoOn = 0, kLast = 1;

uint64_t warmUpMessages(uint64_t bytes) {
  return std::clamp<uint64_t>(kWarmUpBytes / std::max<uint64_t>(bytes, 1), 4, kMaxWarmUpMessages);
}

}  // namespace

// Ends a wait in which nothing happens, lets the network look at its events now and then, and other processes run where
// there are fewer cores than those that spin.
class PairMeasurement::Patience {
 public:
  Patience(Network& network, uint64_t nanoseconds) : network_(network), limit_(nanoseconds), since_(nowNanoseconds()) {}
  void progress() { polls_ = 0; }
  Status check(const char* what) {
    if (++polls_ % kPollsPerYield != 0) return {};
    sched_yield();
    if (polls_ % kPollsPerLook != 0) return {};
    if (polls_ == kPollsPerLook) since_ = nowNanoseconds();  // the first look since the last progress
    network_.clearEvents();
    if (nowNanoseconds() - since_ <= limit_) return {};
    return {ncclTimeout, std::string(what) + " for " + std::to_string(limit_ / 1'000'000'000) + " s"};
  }

 private:
  static constexpr uint64_t kPollsPerYield = 256;
  static constexpr uint64_t kPollsPerLook = 1024;
  Network& network_;
  const uint64_t limit_;
  uint64_t polls_ = 0;
  uint64_t since_;
};

PairMeasurement::Patience PairMeasurement::patienceFor(uint64_t bytes) const {
  return {network_, kPatienceNanoseconds + bytes * kSlowestNanosecondsPerByte};
}

PairMeasurement::~PairMeasurement() { forget(); }

Status PairMeasurement::listen(Handle& handle) { return network_.listen(device_, handle, listener_); }

Status PairMeasurement::connect(const Handle& peer) {
  std::unique_ptr<Connector> connector;
  NCCLRUN_TRY(network_.connect(device_, peer, connector));
  Patience patience = patienceFor(0);
  while (sender_ == nullptr || receiver_ == nullptr) {
    if (sender_ == nullptr) NCCLRUN_TRY(connector->connect(sender_));
    if (receiver_ == nullptr) NCCLRUN_TRY(listener_->accept(receiver_));
    NCCLRUN_TRY(patience.check(sender_ == nullptr ? "the other side has not answered" : "nobody has connected"));
  }
  return {};
}

void PairMeasurement::forget() {
  if (std::exchange(hasSends_, false)) sender_->deregisterMemory(sends_);
  if (std::exchange(hasReceives_, false)) receiver_->deregisterMemory(receives_);
}

Status PairMeasurement::prepare(uint64_t bytes) {
  forget();
  depth_ = size_t(std::clamp<uint64_t>(kFootprint / std::max<uint64_t>(bytes, 1), 2, kMaxDepth));
  stride_ = (size_t(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  memory_.assign(2 * depth_ * stride_ + kAlignment, std::byte{1});
  const size_t half = depth_ * stride_;
  NCCLRUN_TRY(sender_->registerMemory({.address = slot(*sender_, 0), .bytes = half}, sends_));
  hasSends_ = true;
  NCCLRUN_TRY(receiver_->registerMemory({.address = slot(*receiver_, 0), .bytes = half}, receives_));
  hasReceives_ = true;
  return {};
}

std::byte* PairMeasurement::slot(Connection& connection, size_t index) {
  const auto start = (reinterpret_cast<uintptr_t>(memory_.data()) + kAlignment - 1) / kAlignment * kAlignment;
  const size_t number = (&connection == receiver_.get() ? depth_ : 0) + index % depth_;
  return reinterpret_cast<std::byte*>(start) + number * stride_;
}

Status PairMeasurement::complete(Connection& connection, Request* request, Patience& patience) {
  for (;;) {
    bool done = false;
    NCCLRUN_TRY(connection.test(request, done, {}));
    if (done) break;
    NCCLRUN_TRY(patience.check("no message has come through"));
  }
  patience.progress();
  return {};
}

Status PairMeasurement::post(size_t index, uint64_t bytes, Request*& out) {
  const Buffer buffer{slot(*receiver_, index), size_t(bytes), 0, receives_};
  Patience patience = patienceFor(bytes);
  for (out = nullptr; out == nullptr;) {
    NCCLRUN_TRY(receiver_->irecv({&buffer, 1}, out));
    if (out == nullptr) NCCLRUN_TRY(patience.check("no receive could be posted"));
  }
  return {};
}

Status PairMeasurement::begin(size_t index, uint64_t bytes, Request*& out) {
  Patience patience = patienceFor(bytes);
  for (out = nullptr; out == nullptr;) {
    NCCLRUN_TRY(sender_->isend(slot(*sender_, index), size_t(bytes), 0, sends_, out));
    if (out == nullptr) NCCLRUN_TRY(patience.check("the other side has taken no message"));
  }
  return {};
}

// Two receives are posted ahead, so that neither posting one nor the end of a send lies between a message and its
// answer.
Status PairMeasurement::latency(bool leads, Latency& out) {
  constexpr uint64_t kBytes = sizeof(uint64_t);
  NCCLRUN_TRY(prepare(kBytes));
  std::array<Request*, 2> posted = {};
  for (size_t i = 0; i < posted.size(); i++) NCCLRUN_TRY(post(i, kBytes, posted[i]));
  std::vector<double> halves;
  halves.reserve(kMaxRounds);
  Patience patience = patienceFor(kBytes);
  const uint64_t begunAt = nowNanoseconds();
  uint64_t word = kGoOn, round = 0;
  for (; word != kLast; round++) {
    Request* sending = nullptr;
    const uint64_t at = nowNanoseconds();
    if (leads) {
      const uint64_t counted = round < kWarmUpRounds ? 0 : round - kWarmUpRounds + 1;
      const bool isLate = at - begunAt > kLatencyNanoseconds;
      word = counted >= (isLate ? kMinRounds : kMaxRounds) ? kLast : kGoOn;
      std::memcpy(slot(*sender_, round), &word, kBytes);
      NCCLRUN_TRY(begin(round, kBytes, sending));
    }
    NCCLRUN_TRY(complete(*receiver_, posted[round % 2], patience));
    if (leads) {
      if (round >= kWarmUpRounds) halves.push_back(double(nowNanoseconds() - at) / 2);
    } else {
      std::memcpy(&word, slot(*receiver_, round % 2), kBytes);
      NCCLRUN_TRY(begin(round, kBytes, sending));
    }
    NCCLRUN_TRY(complete(*sender_, sending, patience));
    if (word != kLast) NCCLRUN_TRY(post(round % 2, kBytes, posted[round % 2]));
  }
  // The last round has left one receive: another message each way completes it.
  Request* sending = nullptr;
  NCCLRUN_TRY(begin(round, kBytes, sending));
  NCCLRUN_TRY(complete(*receiver_, posted[round % 2], patience));
  NCCLRUN_TRY(complete(*sender_, sending, patience));
  if (!halves.empty()) {
    std::sort(halves.begin(), halves.end());
    out = {.median = halves[halves.size() / 2], .percentile99 = halves[(halves.size() - 1) * 99 / 100]};
  }
  return {};
}

Status PairMeasurement::stream(bool sends, uint64_t bytes, uint64_t messages, uint64_t& firstAt, uint64_t& lastAt) {
  Connection& connection = sends ? static_cast<Connection&>(*sender_) : *receiver_;
  std::deque<Request*> open;
  Patience patience = patienceFor(bytes);
  uint64_t completed = 0;
  const auto finishOne = [&]() -> Status {
    NCCLRUN_TRY(complete(connection, open.front(), patience));
    open.pop_front();
    lastAt = nowNanoseconds();
    if (completed++ == 0) firstAt = lastAt;
    return {};
  };
  for (uint64_t i = 0; i < messages; i++) {
    if (open.size() == depth_) NCCLRUN_TRY(finishOne());
    Request* request = nullptr;
    NCCLRUN_TRY(sends ? begin(i, bytes, request) : post(i, bytes, request));
    open.push_back(request);
  }
  while (!open.empty()) NCCLRUN_TRY(finishOne());
  return {};
}

Status PairMeasurement::send(uint64_t bytes) {
  NCCLRUN_TRY(prepare(std::max<uint64_t>(bytes, sizeof(uint64_t))));
  Request* posted = nullptr;
  NCCLRUN_TRY(post(0, sizeof(uint64_t), posted));
  uint64_t firstAt = 0, lastAt = 0;
  NCCLRUN_TRY(stream(true, bytes, warmUpMessages(bytes), firstAt, lastAt));
  Patience patience = patienceFor(bytes);
  NCCLRUN_TRY(complete(*receiver_, posted, patience));
  uint64_t messages = 0;
  std::memcpy(&messages, slot(*receiver_, 0), sizeof messages);
  return stream(true, bytes, std::min(messages, kMaxMessages), firstAt, lastAt);
}

Status PairMeasurement::receive(uint64_t bytes, double& bytesPerNanosecond) {
  NCCLRUN_TRY(prepare(std::max<uint64_t>(bytes, sizeof(uint64_t))));
  const uint64_t warmUp = warmUpMessages(bytes);
  const uint64_t begunAt = nowNanoseconds();
  uint64_t firstAt = 0, lastAt = 0;
  NCCLRUN_TRY(stream(false, bytes, warmUp, firstAt, lastAt));
  // From before the first one: all may have come before this rank looked.
  const double each = std::max(1.0, double(lastAt - begunAt) / double(warmUp));
  const uint64_t messages =
      std::clamp(uint64_t(double(kBandwidthNanoseconds) / each), uint64_t(2 * depth_), kMaxMessages);
  std::memcpy(slot(*sender_, 0), &messages, sizeof messages);
  Request* sending = nullptr;
  NCCLRUN_TRY(begin(0, sizeof messages, sending));
  Patience patience = patienceFor(bytes);
  NCCLRUN_TRY(complete(*sender_, sending, patience));
  NCCLRUN_TRY(stream(false, bytes, messages, firstAt, lastAt));
  bytesPerNanosecond = double(bytes) * double(messages - 1) / double(lastAt - firstAt);
  return {};
}

}  // namespace ncclrun::net
