#include "datapath/call_check.h"

#include <bit>
#include <chrono>
#include <thread>

namespace ncclrun {
namespace {

using Words = std::array<uint64_t, std::tuple_size_v<decltype(CallRecord::words)>>;

// By its only writer. The number goes last, and is 0 meanwhile.
void writeCall(CallRecord& record, const StepCall& call) {
  const auto words = std::bit_cast<Words>(call);
  record.words[0].store(0, std::memory_order_seq_cst);
  for (size_t i = 1; i < words.size(); i++) record.words[i].store(words[i], std::memory_order_release);
  record.words[0].store(words[0], std::memory_order_seq_cst);
}

// False: there is none, or not a whole one.
bool readCall(const CallRecord& record, StepCall& call) {
  Words words;
  words[0] = record.words[0].load(std::memory_order_seq_cst);
  for (size_t i = 1; i < words.size(); i++) words[i] = record.words[i].load(std::memory_order_acquire);
  call = std::bit_cast<StepCall>(words);
  return words[0] != 0 && record.words[0].load(std::memory_order_acquire) == words[0];
}

// Of the same collective, or of two that follow each other.
bool differ(const StepCall& one, const StepCall& other) {
  if (one.number == other.number) return one.hash != other.hash;
  if (one.number + 1 == other.number) return one.hash != other.before;
  return other.number + 1 == one.number && other.hash != one.before;
}

}  // namespace

// Each writes before it reads, so of two ranks at the same collective one sees the other.
Status CallCheck::compare() const {
  const auto recordOf = [&](uint32_t local) -> CallRecord& { return segment_.doorbell(local).called; };
  const uint32_t own = plan_.peer(rank_).localIndex;
  writeCall(recordOf(own), last_);
  for (uint32_t local = 0; local < plan_.header().localRanks; local++) {
    StepCall theirs;
    if (local == own || !readCall(recordOf(local), theirs) || !differ(theirs, last_)) continue;
    const std::string peer = plan_.describe(plan_.local(local).rank);
    return {ncclInvalidUsage, describeMismatch(theirs, peer, {plan_.describe(rank_), last_})};
  }
  return {};
}

void CallCheck::awaitOthers() const {
  constexpr std::chrono::microseconds kLongest{50000}, kBetween{200};
  const auto isBehind = [&](uint32_t local) {
    StepCall theirs;
    return readCall(segment_.doorbell(local).called, theirs) && theirs.number < last_.number;
  };
  const auto until = std::chrono::steady_clock::now() + kLongest;
  for (uint32_t local = 0; local < plan_.header().localRanks; local++) {
    while (isBehind(local) && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kBetween);
  }
}

}  // namespace ncclrun
