// Every collective × type × operator × place × count × offset on this job's ranks against a reference in double
// precision. Each rank checks its own results; ranks wait for random times between calls. Prints one line on rank 0;
// status 1 and the first wrong elements on stderr if anything differs.
//
//   matrix [SEED [N]]    with N: of the combinations of type, count and place every Nth only, the first by the seed
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "matrix/device.h"
#include "matrix/reference.h"
#include "ncclrun.h"

namespace matrix {
namespace {

constexpr size_t kCounts[] = {0, 1, 3, 17, 257, 2003, 70001};
constexpr size_t kManyElements = 10000;  // computing references takes long: two types, sums only
constexpr int kMaxErrors = 10;
constexpr size_t kGuard = 64;  // bytes behind every buffer that nobody may touch

struct Place {
  size_t count;
  size_t skew;  // bytes from an aligned address
  bool inPlace;
  int root;
  uint64_t seed;
};

class Matrix {
 public:
  Matrix(uint64_t seed, uint64_t part) : seed_(seed), part_(part) {
    ncclUniqueId id;
    must(ncclrunGetJob(&id, &ranks_, &rank_));
    must(ncclCommInitRank(&comm_, ranks_, id, rank_));
  }
  ~Matrix() { ncclCommDestroy(comm_); }

  void run() {
    for (const Type& type : kTypes) {
      for (const size_t count : kCounts) {
        if (count > kManyElements && type.type != ncclFloat32 && type.type != ncclUint8) continue;
        for (const bool inPlace : {false, true}) {
          const uint64_t number = seed_++;
          if (number % part_ != 0) continue;
          const Place place{count, mix(number) % 3 == 0 ? 0 : mix(number) % kGuard, inPlace, int(mix(~number) % ranks_),
                            number};
          moves(type, place);
          for (const Operator& op : kOperators) {
            if (count > kManyElements && op.op != ncclSum) continue;
            reductions(type, op, place, Kind::moderate);
            if (type.floating) reductions(type, op, place, Kind::special);
          }
        }
      }
      sameEverywhere(type);
    }
  }
  int finish() {
    const uint64_t all = reduced(uint64_t(wrong_), ncclSum);
    if (rank_ == 0) std::printf("%d cases on %d ranks: %llu wrong\n", cases_, ranks_, (unsigned long long)all);
    return all == 0 ? 0 : 1;
  }

 private:
  using Buffer = std::vector<char>;

  cudaStream_t stream() const { return device_.stream(); }
  void must(ncclResult_t result) const {
    if (result == ncclSuccess) return;
    std::fprintf(stderr, "rank %d: %s: %s\n", rank_, ncclGetErrorString(result), ncclGetLastError(nullptr));
    std::exit(1);
  }
  void synchronize() { must(device_.synchronize()); }
  uint64_t reduced(uint64_t value, ncclRedOp_t op);
  void delay(uint64_t seed) const {
    const uint64_t random = mix(seed * 131 + uint64_t(rank_));
    if (random % 8 == 0) usleep(useconds_t(random >> 8) % 200);
  }
  void complain(const std::string& what) {
    if (wrong_++ < kMaxErrors) std::fprintf(stderr, "rank %d: %s\n", rank_, what.c_str());
  }
  static std::string nameOf(const char* collective, const Type& type, const Place& place) {
    return std::string(collective) + " " + type.name + " count " + std::to_string(place.count) + " skew " +
           std::to_string(place.skew) + (place.inPlace ? " in place" : "") + " root " + std::to_string(place.root);
  }

  uint64_t element(const Type& type, const Place& place, Kind kind, int rank, size_t i) const {
    return randomBits(type, kind, mix(place.seed * 977 + uint64_t(rank)) + i);
  }
  Buffer filled(const Type& type, const Place& place, Kind kind, int rank, size_t count) const {
    Buffer buffer(place.skew + count * type.bytes + kGuard, 0x5a);
    for (size_t i = 0; i < count; i++) {
      const uint64_t bits = element(type, place, kind, rank, i);
      std::memcpy(&buffer[place.skew + i * type.bytes], &bits, type.bytes);
    }
    return buffer;
  }
  void checkGuard(const std::string& name, const Place& place, const Buffer& buffer) {
    for (size_t i = 0; i < place.skew; i++) {
      if (buffer[i] != 0x5a) return complain(name + ": wrote before the buffer");
    }
    for (size_t i = buffer.size() - kGuard; i < buffer.size(); i++) {
      if (buffer[i] != 0x5a) return complain(name + ": wrote behind the buffer");
    }
  }

  // Collectives that only move: bits arrive as they were.
  void moves(const Type& type, const Place& place);
  template <class Call, class From>
  void move(const char* collective, const Type& type, const Place& place, size_t sendCount, size_t receiveCount,
            size_t sendBegin, size_t receiveBegin, bool receives, Call&& call, From&& from);
  void reductions(const Type& type, const Operator& op, const Place& place, Kind kind);
  void sameEverywhere(const Type& type);

  enum { sent, received, scalars };
  Device device_;
  int rank_ = 0, ranks_ = 0;
  ncclComm_t comm_ = nullptr;
  uint64_t seed_;
  const uint64_t part_;
  uint64_t bits_ = 0;  // of all results that all ranks have alike
  int cases_ = 0;
  int wrong_ = 0;
};

// In place, the smaller buffer begins at element sendBegin or receiveBegin of the larger one. from(i): the rank and
// element that received element i comes from.
template <class Call, class From>
void Matrix::move(const char* collective, const Type& type, const Place& place, size_t sendCount, size_t receiveCount,
                  size_t sendBegin, size_t receiveBegin, bool receives, Call&& call, From&& from) {
  cases_++;
  const std::string name = nameOf(collective, type, place);
  const size_t whole = std::max(sendBegin + sendCount, receiveBegin + receiveCount);
  Buffer send = filled(type, place, Kind::special, rank_, place.inPlace ? 0 : sendCount);
  Buffer receive(place.skew + (place.inPlace ? whole : receiveCount) * type.bytes + kGuard, 0x5a);
  if (place.inPlace) {
    const Buffer own = filled(type, place, Kind::special, rank_, sendCount);
    std::memcpy(&receive[place.skew + sendBegin * type.bytes], &own[place.skew], sendCount * type.bytes);
  }
  const size_t begin = place.skew + (place.inPlace ? receiveBegin * type.bytes : 0);
  char* const receiveAt = device_.place(received, receive);
  const char* const source =
      place.inPlace ? receiveAt + place.skew + sendBegin * type.bytes : device_.place(sent, send) + place.skew;
  delay(place.seed + uint64_t(cases_));
  must(call(source, receiveAt + begin));
  synchronize();
  device_.fetch(received, receive);
  const char* const to = &receive[begin];
  for (size_t i = 0; receives && i < receiveCount; i++) {
    const auto [rank, index] = from(i);
    if (bitsAt(type, to, i) != element(type, place, Kind::special, rank, index)) {
      complain(name + ": element " + std::to_string(i) + " is not element " + std::to_string(index) + " of rank " +
               std::to_string(rank));
      break;
    }
  }
  checkGuard(name, place, receive);
}

void Matrix::moves(const Type& type, const Place& place) {
  const size_t n = size_t(ranks_), count = place.count, mine = size_t(rank_) * count;
  const bool isRoot = rank_ == place.root;
  const auto per = [&](size_t i) { return count == 0 ? 0 : i / count; };
  using Source = std::pair<int, size_t>;
  move(
      "allGather", type, place, count, n * count, mine, 0, true,
      [&](const void* s, void* r) { return ncclAllGather(s, r, count, type.type, comm_, stream()); },
      [&](size_t i) { return Source(int(per(i)), i % count); });
  move(
      "broadcast", type, place, count, count, 0, 0, true,
      [&](const void* s, void* r) { return ncclBroadcast(s, r, count, type.type, place.root, comm_, stream()); },
      [&](size_t i) { return Source(place.root, i); });
  move(
      "alltoall", type, place, n * count, n * count, 0, 0, true,
      [&](const void* s, void* r) { return ncclAlltoAll(s, r, count, type.type, comm_, stream()); },
      [&](size_t i) { return Source(int(per(i)), mine + i % count); });
  move(
      "gather", type, place, count, n * count, isRoot ? mine : 0, 0, isRoot,
      [&](const void* s, void* r) { return ncclGather(s, r, count, type.type, place.root, comm_, stream()); },
      [&](size_t i) { return Source(int(per(i)), i % count); });
  move(
      "scatter", type, place, n * count, count, 0, isRoot ? mine : 0, true,
      [&](const void* s, void* r) { return ncclScatter(s, r, count, type.type, place.root, comm_, stream()); },
      [&](size_t i) { return Source(place.root, mine + i); });
  move(
      "sendrecv", {type}, {count, place.skew, false, place.root, place.seed}, count, count, 0, 0, true,
      [&](const void* s, void* r) {
        must(ncclGroupStart());
        must(ncclSend(s, count, type.type, (rank_ + 1) % ranks_, comm_, stream()));
        must(ncclRecv(r, count, type.type, (rank_ + ranks_ - 1) % ranks_, comm_, stream()));
        return ncclGroupEnd();
      },
      [&](size_t i) { return Source((rank_ + ranks_ - 1) % ranks_, i); });
}

void Matrix::reductions(const Type& type, const Operator& op, const Place& place, Kind kind) {
  ncclRedOp_t number = op.op;
  const uint64_t scalar = scalarOf(type, rank_);
  Buffer scalarBytes(sizeof scalar);
  std::memcpy(scalarBytes.data(), &scalar, sizeof scalar);
  if (op.op == kPreMulSum) {
    const auto residence = place.seed % 2 == 0 ? ncclScalarDevice : ncclScalarHostImmediate;
    void* const at = residence == ncclScalarDevice ? device_.place(scalars, scalarBytes) : scalarBytes.data();
    synchronize();
    must(ncclRedOpCreatePreMulSum(&number, at, type.type, residence, comm_));
  }
  const size_t n = size_t(ranks_), count = place.count;
  enum { allReduce, reduce, reduceScatter };
  for (const int collective : {allReduce, reduce, reduceScatter}) {
    cases_++;
    static constexpr const char* kNames[] = {"allReduce ", "reduce ", "reduceScatter "};
    const std::string name = nameOf((kNames[collective] + std::string(op.name)).c_str(), type, place);
    const bool scatters = collective == reduceScatter;
    const bool receives = collective != reduce || rank_ == place.root;
    const size_t begin = scatters ? size_t(rank_) * count : 0;  // of the elements that this rank receives
    Buffer send = filled(type, place, kind, rank_, scatters ? n * count : count);
    const Buffer before = send;
    Buffer receive(place.skew + count * type.bytes + kGuard, 0x5a);
    char* const from = device_.place(sent, send) + place.skew;
    char* const target = place.inPlace ? from + begin * type.bytes : device_.place(received, receive) + place.skew;
    delay(place.seed + uint64_t(cases_));
    if (collective == allReduce) must(ncclAllReduce(from, target, count, type.type, number, comm_, stream()));
    if (collective == reduce) must(ncclReduce(from, target, count, type.type, number, place.root, comm_, stream()));
    if (scatters) must(ncclReduceScatter(from, target, count, type.type, number, comm_, stream()));
    synchronize();
    device_.fetch(sent, send);
    if (!place.inPlace) device_.fetch(received, receive);
    const char* const to = place.inPlace ? &send[place.skew + begin * type.bytes] : &receive[place.skew];
    std::vector<uint64_t> inputs(n);
    for (size_t i = 0; receives && i < count; i++) {
      for (size_t rank = 0; rank < n; rank++) inputs[rank] = element(type, place, kind, int(rank), begin + i);
      const uint64_t result = bitsAt(type, to, i);
      if (collective == allReduce) bits_ = mix(bits_ ^ result);
      const std::string wrong = judge(type, op.op, inputs, result);
      if (wrong.empty()) continue;
      complain(name + ": element " + std::to_string(i) + " should be " + wrong);
      break;
    }
    checkGuard(name, place, place.inPlace ? send : receive);
    if (!place.inPlace && send != before) complain(name + ": changed what was sent");
  }
  if (op.op == kPreMulSum) must(ncclRedOpDestroy(number, comm_));
}

uint64_t Matrix::reduced(uint64_t value, ncclRedOp_t op) {
  Buffer bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  char* const at = device_.place(received, bytes);
  must(ncclAllReduce(at, at, 1, ncclUint64, op, comm_, stream()));
  synchronize();
  device_.fetch(received, bytes);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

void Matrix::sameEverywhere(const Type& type) {
  if (reduced(bits_, ncclMin) != reduced(bits_, ncclMax))
    complain(std::string("allReduce ") + type.name + ": ranks have different bits");
  bits_ = 0;
}

}  // namespace
}  // namespace matrix

int main(int argc, char** argv) {
  const auto number = [&](int i) { return argc > i ? std::max(1ull, std::strtoull(argv[i], nullptr, 10)) : 1; };
  matrix::Matrix all(number(1), number(2));
  all.run();
  return all.finish();
}
