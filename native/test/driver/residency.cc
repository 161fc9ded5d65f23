#include "residency.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

namespace stand_in {
namespace {

struct SmsOfDevice {
  uint32_t free = kSms;
  std::deque<const Residency*> waiting;  // launches that have blocks to begin, the first one first
};

std::mutex mutex;
SmsOfDevice& of(int device) {
  static auto& all = *new std::map<int, SmsOfDevice>;
  return all[device];
}

}  // namespace

Residency::Residency(int device, uint32_t blocks) : device_(device), waiting_(blocks) {
  std::lock_guard lock(mutex);
  of(device_).waiting.push_back(this);
}

Residency::~Residency() {
  std::lock_guard lock(mutex);
  of(device_).free += resident_;
  std::erase(of(device_).waiting, this);
}

uint32_t Residency::admit() {
  if (waiting_ == 0) return 0;
  std::lock_guard lock(mutex);
  SmsOfDevice& own = of(device_);
  if (own.waiting.front() != this) return 0;
  const uint32_t blocks = std::min(waiting_, own.free);
  own.free -= blocks;
  waiting_ -= blocks;
  resident_ += blocks;
  if (waiting_ == 0) own.waiting.pop_front();
  return blocks;
}

void Residency::leave(uint32_t blocks) {
  if (blocks == 0) return;
  std::lock_guard lock(mutex);
  of(device_).free += blocks;
  resident_ -= blocks;
}

}  // namespace stand_in
