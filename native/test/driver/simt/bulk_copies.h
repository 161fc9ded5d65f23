// Twins of cuda/kernels/bulk_copies.cuh: what is asked for happens as late as the waits allow, or at any time before.
#pragma once
#include <cstdint>
#include <cstring>
#include <deque>

#include "simt/machine.h"

namespace ncclrun::cuda {

inline constexpr bool kHasBulkCopies = true;

class BulkCopies {
 public:
  static void begin(uint64_t* arrival, uint32_t count = 1) {
    *arrival = reinterpret_cast<uint64_t>(new Arrival{count});
  }
  static void end(uint64_t* arrival) { delete &at(arrival); }
  static void order() {}

  void load(char* to, const char* from, uint32_t bytes, uint64_t* arrival) {
    at(arrival).loads.push_back({to, from, bytes});
    simt::delay();
    if (simt::chance(2)) at(arrival).carryOut();
  }
  static void arrive(uint64_t* arrival) { at(arrival).add(); }
  void await(uint64_t* arrival, uint32_t phase) {
    while (at(arrival).phases <= phase) {
      if (!at(arrival).carryOut()) simt::standAside();
    }
    simt::delay();
  }
  void store(char* to, const char* from, uint32_t bytes) {
    stores_.push_back({to, from, bytes});
    simt::delay();
    if (simt::chance(2)) carryOutStores(0);
  }
  template <uint32_t kLatest>
  void awaitStores() {
    carryOutStores(kLatest);
  }
  template <uint32_t kLatest>
  void awaitStoresRead() {
    carryOutStores(kLatest);
  }

 private:
  struct Copy {
    char* to;
    const char* from;
    uint32_t bytes;

    void carryOut() const { std::memcpy(to, from, bytes); }
  };
  // What an arrival, as large as the hardware's, points to.
  struct Arrival {
    uint32_t count;
    uint32_t came = 0, phases = 0;
    std::deque<Copy> loads{};  // that have not been carried out

    void add() {
      if (++came < count) return;
      came = 0;
      phases++;
    }
    bool carryOut() {
      if (loads.empty()) return false;
      loads.front().carryOut();
      loads.pop_front();
      add();
      return true;
    }
  };
  static Arrival& at(const uint64_t* arrival) { return *reinterpret_cast<Arrival*>(*arrival); }

  // All stores but the latest `left`.
  void carryOutStores(size_t left) {
    for (; stores_.size() > left; stores_.pop_front()) stores_.front().carryOut();
  }

  std::deque<Copy> stores_;
};

}  // namespace ncclrun::cuda
