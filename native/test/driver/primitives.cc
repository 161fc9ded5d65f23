#include "primitives.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace stand_in {

using namespace ncclrun;
using namespace ncclrun::cuda;

namespace {

constexpr auto kLook = std::chrono::microseconds(500);
constexpr uint64_t kFlagBytes = 16;  // before a slot's payload

uint32_t load(const void* word) {
  return std::atomic_ref(*const_cast<uint32_t*>(static_cast<const uint32_t*>(word))).load(std::memory_order_acquire);
}
void store(void* word, uint32_t value) {
  std::atomic_ref(*static_cast<uint32_t*>(word)).store(value, std::memory_order_release);
}

// The data of lines whose flags all are there.
std::vector<char> unpack(const char* lines, size_t bytes) {
  std::vector<char> data((bytes + 7) / 8 * 8);
  for (size_t half = 0; half < data.size() / 4; half++) std::memcpy(&data[half * 4], lines + half * 8, 4);
  return data;
}
// The last line first: nobody may rely on their order.
void pack(std::vector<char> data, uint32_t flag, char* lines) {
  data.resize((data.size() + 7) / 8 * 8);
  for (size_t half = data.size() / 4; half-- > 0;) {
    uint32_t word = 0;
    std::memcpy(&word, &data[half * 4], sizeof word);
    std::atomic_ref(reinterpret_cast<uint64_t*>(lines)[half])
        .store(uint64_t(flag) << 32 | word, std::memory_order_relaxed);
  }
}

struct Types {
  const char* module;
  ncclDataType_t first, second;
};
constexpr Types kTypes[] = {
    {"float16_bfloat16", ncclFloat16, ncclBfloat16},
    {"float32_float64", ncclFloat32, ncclFloat64},
    {"float8", ncclFloat8e4m3, ncclFloat8e5m2},
    {"integer32", ncclUint32, ncclInt32},
    {"integer64", ncclUint64, ncclInt64},
    {"integer8", ncclUint8, ncclInt8},
};

}  // namespace

Reduction reductionOf(const std::string& module, const cuda::Launch& launch) {
  Reduction reduction;
  reduction.reduce = copyFunction();
  for (const Types& types : kTypes) {
    if (module != types.module) continue;
    const auto type = launch.opIndex >= kRedOps ? types.second : types.first;
    const auto redOp = RedOp(launch.opIndex % kRedOps);
    const ncclRedOp_t op = redOp == RedOp::prod        ? ncclProd
                           : redOp == RedOp::max       ? ncclMax
                           : redOp == RedOp::min       ? ncclMin
                           : redOp == RedOp::preMulSum ? kPreMulSum
                           : redOp == RedOp::average   ? ncclAvg
                                                       : ncclSum;
    uint64_t scalar = 0;
    if (launch.scalarAt != nullptr) std::memcpy(&scalar, launch.scalarAt, launch.elementBytes);
    makeReduction(type, op, &scalar, std::max(launch.divisor, 2u), reduction);
    if (launch.scalarAt == nullptr) reduction.scalar = launch.scalar;
    if (redOp == RedOp::average) reduction.divisor = launch.divisor;
  }
  return reduction;
}

void Block::start() {
  fiber_.start([](void* self) { static_cast<Block*>(self)->body_(*static_cast<Block*>(self)); }, this);
}

bool Block::resume() {
  if (!fiber_.done()) fiber_.resume();
  return !fiber_.done();
}

bool Block::await(const cuda::Launch& launch, const std::function<bool()>& ready) {
  bool reported = false;
  auto next = std::chrono::steady_clock::now() + kLook;
  while (!ready()) {
    aborted_ = aborted_ || (launch.aborted != nullptr && load(launch.aborted) > 1) ||
               (launch.aborted2 != nullptr && load(launch.aborted2) > 1);
    if (aborted_) break;
    // Again and again, as kernels do: the host writes there, too.
    if (launch.report.state != nullptr && std::chrono::steady_clock::now() > next) {
      next = std::chrono::steady_clock::now() + kLook;
      reported = true;
      store(launch.report.state, launch.report.waiting);
    }
    fiber_.suspend();
  }
  if (reported) store(launch.report.state, launch.report.idle);
  return !aborted_;
}

void runAll(std::vector<std::unique_ptr<Block>>& blocks, Residency& residency) {
  std::vector<Block*> running;
  size_t begun = 0;
  for (int rounds = 0; begun < blocks.size() || !running.empty(); rounds++) {
    for (uint32_t count = residency.admit(); count > 0; count--) {
      running.push_back(blocks[begun++].get());
      running.back()->start();
    }
    residency.leave(uint32_t(std::erase_if(running, [](Block* block) { return !block->resume(); })));
    if (rounds < 50) std::this_thread::yield();
    if (rounds >= 50) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

Primitives::Primitives(Block& block, const cuda::Launch& launch, const Item& item, uint32_t channel, uint32_t protocol,
                       const Reduction& reduction)
    : block_(block), launch_(launch), protocol_(protocol), reduction_(reduction) {
  const Slots& slots = launch.slots;
  const RingPosition& position = launch.ringPositions[channel];
  const bool ringsApart = item.usesRing && protocol == 0;
  steps_ = protocol != 0 ? slots.lineSteps : ringsApart ? position.steps : slots.pairSteps;
  slotBytes_ = protocol == 1   ? slots.llStepBytes
               : protocol == 2 ? slots.ll128StepBytes
               : ringsApart    ? position.stepBytes
                               : pairStepBytes(slots, channel);
  stride_ = protocol == 0 ? slotStride(slots, uint32_t(slotBytes_)) : slotBytes_;
  payload_ = protocol == 0 ? slotBytes_ : protocol == 1 ? slotBytes_ / 16 * 8 : slotBytes_ / 128 * 120;
  const auto ofPair = [&](uint32_t peer) {
    const uint64_t at = regionOffset(slots, channel);
    const RegionPair regions = regionsOf(launch, peer);
    return Connection{{regions.in + at, regions.out + at, regions.isRemote},
                      slotOffset(protocol, slots),
                      channel * launch.ranks + peer};
  };
  const auto ofRing = [&](RegionPair regions) { return Connection{regions, position.slots, position.state}; };
  for (uint32_t i = 0; i < item.receiveCount; i++) {
    const uint32_t peer = item.usesRing ? position.previous : item.peers[i];
    receives_.push_back(connectionOf(ringsApart ? ofRing(position.fromPrevious) : ofPair(peer), true));
  }
  for (uint32_t i = 0; i < item.sendCount; i++) {
    const uint32_t peer = item.usesRing ? position.next : item.peers[i];
    sends_.push_back(connectionOf(ringsApart ? ofRing(position.toNext) : ofPair(peer), false));
  }
}

Primitives::ConnectionState Primitives::connectionOf(const Connection& connection, bool receives) const {
  const auto& [regions, slots, state] = connection;
  char* const data = receives ? regions.in : regions.out;
  char* const credit = receives ? regions.out : regions.in;
  const bool isRemote = regions.isRemote != 0;
  const uint32_t sequence = isRemote ? 0 : protocol_;
  const uint32_t step = receives ? launch_.receives[state].step[sequence] : launch_.sends[state].step[sequence];
  const uint64_t bytes = receives ? launch_.receives[state].bytes : launch_.sends[state].bytes;
  const uint32_t header = protocol_ == 0 ? launch_.slots.headerBytes : 0;
  auto& region = *reinterpret_cast<Region*>(data);
  char* const gpuSlots = header != 0 && launch_.usesGpuDirect != 0 ? region.gpuSlots : nullptr;
  return {gpuSlots != nullptr ? gpuSlots : data + slots + header,
          &region.tail,
          &reinterpret_cast<Region*>(credit)->head[sequence],
          receives || !isRemote ? nullptr : region.posts,
          sequence,
          isRemote && protocol_ == 1,
          !receives && gpuSlots != nullptr,
          regions.isRemote == kReduces ? uint32_t(launch_.reduction) << kNetPostReduction : 0,
          state,
          step,
          bytes};
}

void Primitives::finish() {
  for (const ConnectionState& connection : receives_) {
    launch_.receives[connection.state].step[connection.sequence] = connection.step;
    launch_.receives[connection.state].bytes = connection.bytes;
  }
  for (const ConnectionState& connection : sends_) {
    launch_.sends[connection.state].step[connection.sequence] = connection.step;
    launch_.sends[connection.state].bytes = connection.bytes;
  }
}

bool Primitives::hasArrived(const ConnectionState& connection, size_t count) const {
  const uint32_t wanted = connection.step + 1;
  if (connection.hasLines) {
    const size_t bytes = count * launch_.elementBytes;
    for (size_t line = 0; line * 8 < bytes; line++) {
      for (const size_t half : {4, 12}) {
        if (load(slotOf(connection) + line * 16 + half) != wanted) return false;
      }
    }
    return true;
  }
  const uint32_t flag = load(flagOf(connection));
  return int32_t(flag - wanted) >= 0 && (protocol_ == 0 || flag == wanted);
}

bool Primitives::awaitSlots(const Move& move) {
  if (aborted_) return false;
  const bool ready = block_.await(launch_, [&] {
    for (uint32_t i = move.from; i < move.from + move.receiveCount; i++) {
      if (!hasArrived(receives_[i], move.count)) return false;
    }
    for (uint32_t i = move.to; i < move.to + move.sendCount; i++) {
      if (int32_t(load(sends_[i].head) + uint32_t(steps_) - (sends_[i].step + 1)) < 0) return false;
    }
    return true;
  });
  aborted_ = !ready;
  return ready;
}

void Primitives::move(const Move& move) {
  if (move.count == 0 || !awaitSlots(move)) return;
  const size_t bytes = move.count * launch_.elementBytes;
  const size_t skip = protocol_ == 0 ? 0 : kFlagBytes;
  std::vector<char> scaled;
  const void* own = move.own;
  if (own != nullptr && reduction_.scale != nullptr) {
    scaled.resize(bytes);
    reduction_.scale(scaled.data(), own, move.count, &reduction_.scalar);
    own = scaled.data();
  }
  std::vector<std::vector<char>> unpacked(move.receiveCount), packed(move.sendCount);
  std::vector<const void*> sources;
  for (uint32_t i = 0; i < move.receiveCount; i++) {
    if (own != nullptr && sources.size() == move.ownIndex) sources.push_back(own);
    const ConnectionState& connection = receives_[move.from + i];
    if (connection.hasLines) unpacked[i] = unpack(slotOf(connection), bytes);
    sources.push_back(connection.hasLines ? unpacked[i].data() : slotOf(connection) + skip);
  }
  if (own != nullptr && sources.size() == move.receiveCount) sources.push_back(own);
  std::vector<void*> targets;
  for (uint32_t i = 0; i < move.sendCount; i++) {
    const ConnectionState& connection = sends_[move.to + i];
    if (connection.hasLines) packed[i].resize(bytes);
    targets.push_back(connection.hasLines ? packed[i].data() : slotOf(connection) + skip);
  }
  if (move.target != nullptr) targets.push_back(move.target);
  reduce(sources, targets, move.count, move.target != nullptr);
  post(move);
  for (uint32_t i = 0; i < move.sendCount; i++) {
    if (ConnectionState posted = sends_[move.to + i]; posted.hasLines) {
      posted.step--;
      pack(packed[i], posted.step + 1, slotOf(posted));
    }
  }
}

void Primitives::reduce(std::span<const void* const> sources, std::span<void* const> targets, size_t count,
                        bool divides) const {
  const size_t bytes = count * launch_.elementBytes;
  if (sources.size() == 1) {  // nothing is combined
    for (void* target : targets) std::memmove(target, sources[0], bytes);
    return;
  }
  std::vector<char> result(bytes);
  void* into = result.data();
  reduction_.reduce(&into, 1, sources.data(), uint32_t(sources.size()), count, false);
  if (divides && reduction_.divide != nullptr) reduction_.divide(into, count, reduction_.divisor);
  for (void* target : targets) std::memcpy(target, into, bytes);
}

// All ranks' operands, from where they lie.
void Primitives::pull(const Work& w) {
  const size_t part = (w.count + w.blocks - 1) / w.blocks, first = lesser(w.count, w.block * part);
  const size_t count = lesser(part, w.count - first), begin = first * w.elementBytes;
  if (count == 0) return;
  std::vector<std::vector<char>> scaled(w.ranks);
  std::vector<const void*> sources;
  for (uint32_t rank = 0; rank < w.ranks; rank++) {
    sources.push_back((rank == w.rank ? w.send : launch_.in[rank]) + begin);
    if (reduction_.scale == nullptr) continue;
    scaled[rank].resize(count * w.elementBytes);
    reduction_.scale(scaled[rank].data(), sources[rank], count, &reduction_.scalar);
    sources[rank] = scaled[rank].data();
  }
  void* const target = w.receive + begin;
  reduce(sources, std::span(&target, 1), count, true);
}

void Primitives::post(const Move& move) {
  const uint64_t bytes = move.count * launch_.elementBytes;
  for (uint32_t i = move.from; i < move.from + move.receiveCount; i++) {
    ConnectionState& connection = receives_[i];
    connection.bytes += bytes;
    store(connection.head, ++connection.step);
  }
  for (uint32_t i = move.to; i < move.to + move.sendCount; i++) {
    ConnectionState& connection = sends_[i];
    connection.bytes += bytes;
    if (connection.writesHeaders) {
      const uint64_t header = netHeader(connection.step, bytes);
      std::memcpy(slotOf(connection) - kNetMessageHeaderBytes, &header, sizeof header);
    }
    if (connection.posts != nullptr) {
      std::atomic_ref(connection.posts[connection.step % kMaxNetSteps])
          .store(netPost(connection.step, protocol_ == 1, bytes | connection.reduction), std::memory_order_release);
      connection.step++;
      continue;
    }
    void* const flag = flagOf(connection);
    store(flag, ++connection.step);
  }
}

void Primitives::copyAll(const char* source, char* target, size_t count, uint32_t block, uint32_t blocks) {
  if (source == target && reduction_.scale == nullptr) return;
  const size_t part = ((count + blocks - 1) / blocks + 15) / 16 * 16;
  const size_t begin = lesser(count, block * part), own = lesser(part, count - begin);
  if (own == 0) return;
  move({0, 0, 0, 0, source + begin * launch_.elementBytes, 0, target + begin * launch_.elementBytes, own});
}

void Primitives::signalAll() {
  const Move all{0, 0, 0, uint32_t(sends_.size()), nullptr, 0, nullptr, 0};
  if (awaitSlots(all)) post(all);
}
void Primitives::awaitAll() {
  const Move all{0, uint32_t(receives_.size()), 0, 0, nullptr, 0, nullptr, 0};
  if (awaitSlots(all)) post(all);
}

}  // namespace stand_in
