// Twins of device/cuda/bulk_copies.cuh: what is asked for happens as late as the waits allow, or at any time before.
#pragma once
#include <cstdint>
#include <cstring>
#include <deque>

#include "simt/machine.h"

namespace ncclrun::cuda {

inline constexpr bool kHasBulkCopies = true;

class BulkCopies {
 public:
  static void begin(uint64_t* arrival) { *arrival = 0; }
  static void end(uint64_t*) {}
  static void order() {}

  void load(char* to, const char* from, uint32_t bytes, uint64_t* arrival) {
    loads_.push_back({to, from, bytes, arrival});
    simt::delay();
    if (simt::chance(2)) carryOut(loads_, 0);
  }
  void awaitLoad(uint64_t* arrival, uint32_t turn) {
    while (*arrival <= turn) carryOut(loads_, loads_.size() - 1);
    simt::delay();
  }
  void store(char* to, const char* from, uint32_t bytes) {
    stores_.push_back({to, from, bytes, nullptr});
    simt::delay();
    if (simt::chance(2)) carryOut(stores_, 0);
  }
  template <uint32_t kLatest>
  void awaitStores() {
    carryOut(stores_, kLatest);
  }
  template <uint32_t kLatest>
  void awaitStoresRead() {
    carryOut(stores_, kLatest);
  }

 private:
  struct Copy {
    char* to;
    const char* from;
    uint32_t bytes;
    uint64_t* arrival;
  };
  // All but the latest `left`.
  static void carryOut(std::deque<Copy>& copies, size_t left) {
    for (; copies.size() > left; copies.pop_front()) {
      const Copy& copy = copies.front();
      std::memcpy(copy.to, copy.from, copy.bytes);
      if (copy.arrival != nullptr) ++*copy.arrival;
    }
  }

  std::deque<Copy> loads_, stores_;
};

}  // namespace ncclrun::cuda
