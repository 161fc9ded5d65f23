#include "measure.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

constexpr size_t kPageBytes = 4096;

// Touched once here, so that no measurement pays for the kernel's first look at a page.
std::byte* pages(size_t bytes) {
  const size_t whole = std::max(bytes + kPageBytes - 1, kPageBytes) / kPageBytes * kPageBytes;
  void* memory = std::aligned_alloc(kPageBytes, whole);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, whole);
  return static_cast<std::byte*>(memory);
}

}  // namespace

Measure::Measure(const Options& options, Session& session)
    : options_(options),
      session_(session),
      collective_(collectiveNamed(options.collective)),
      type_(elementTypeNamed(options.type)),
      op_(operatorNamed(options.op)),
      send_(pages(options.end), std::free),
      receive_(pages(options.end), std::free) {}

Measurement Measure::run(size_t bytes, bool inPlace) {
  const size_t count =
      bytes / type_.bytes /
      std::max<size_t>(collective_.sendCount(1, session_.ranks()), collective_.receiveCount(1, session_.ranks()));
  const Place place = {count, collective_.sendCount(count, session_.ranks()) * type_.bytes,
                       collective_.receiveCount(count, session_.ranks()) * type_.bytes, inPlace};
  Measurement result{};
  result.bytes = std::max(place.sendBytes, place.receiveBytes);
  result.count = count;
  result.inPlace = inPlace;
  const double seconds = session_.sum(timeOne(place)) / session_.ranks();
  result.microseconds = seconds * 1e6;
  result.algorithmBandwidth = static_cast<double>(result.bytes) / 1e9 / seconds;
  result.busBandwidth = result.algorithmBandwidth * collective_.busFactor(session_.ranks());
  if (options_.check) result.wrong = session_.sum(wrongElements(place));
  return result;
}

void Measure::start(const Place& place, int iteration) {
  const size_t bytes = std::max(place.sendBytes, place.receiveBytes);
  const size_t places = bytes == 0 ? 1 : std::max<size_t>(options_.end / bytes, 1);
  const size_t shift = bytes * (static_cast<size_t>(iteration) % places);
  std::byte* receive = receive_.get() + shift;
  const std::byte* send = place.inPlace ? receive : send_.get() + shift;
  must(collective_.run({send, receive, place.count, type_.type, op_.op, std::max(collective_.root, 0), session_.comm(),
                        session_.stream()}));
}

// Seconds per operation on this rank.
double Measure::timeOne(const Place& place) {
  for (int i = 0; i < options_.warmup; i++) start(place, i);
  session_.synchronize();
  session_.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < options_.iterations; i++) start(place, i);
  session_.synchronize();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  session_.barrier();
  return taken.count() / options_.iterations;
}

int64_t Measure::wrongElements(const Place& place) {
  const DataRule rule = {type_, op_.op, session_.ranks(), ++seed_};
  const size_t sendCount = place.sendBytes / type_.bytes;
  const size_t receiveCount = place.receiveBytes / type_.bytes;
  std::memset(receive_.get(), 0, place.receiveBytes);
  spread(contribution(rule, session_.rank(), sendCount), place.inPlace ? receive_.get() : send_.get(), place.sendBytes);
  start(place, 0);
  session_.synchronize();
  const int64_t wrong = countWrong(collective_.expected(rule, session_.rank(), receiveCount), receive_.get(),
                                   place.receiveBytes, type_.bytes);
  session_.barrier();
  return wrong;
}
