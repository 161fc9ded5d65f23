#include "variants.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <vector>

#include "load.h"
#include "measure.h"

namespace {

// From so many bytes on the plan has a row for each variant; below are those that jobs would take.
constexpr uint64_t kNumbered = uint64_t{1} << 40;
// One measurement of a variant takes about so long, unless one operation takes longer.
constexpr double kMeasurementMicroseconds = 4000;
// Tried alone, an operation that takes so many times as long as the fastest is not measured on.
constexpr double kHopeless = 6;
// From this size on it is bandwidth that decides: a variant that takes so many times as long as the fastest stays
// behind.
constexpr size_t kLarge = 1 << 20;
constexpr double kBehind = 2.5;
constexpr int kTries = 3;

// Unless the user says otherwise.
struct Limits {
  size_t bytes;
  int iterations;  // on GPUs all that a graph has, and making it takes longer than running it
};
constexpr Limits kOnHost = {size_t{64} << 20, 1000};
constexpr Limits kOnGpu = {size_t{1} << 30, 50};

struct Candidate {
  uint64_t row;  // bytes that it serves
  ncclrunVariant variant;
  std::vector<double> times = {};  // microseconds, of the size that is measured
  int iterations = 1;
  bool behind = false;  // at all sizes that follow

  double median() const { return quantile(0.5); }

  // How far the middle half of the rounds lies apart, as a part of their median: rounds that other work disturbed
  // differ.
  double spread() const { return (quantile(0.75) - quantile(0.25)) / median(); }

 private:
  double quantile(double share) const {
    std::vector<double> sorted = times;
    const auto position = sorted.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(sorted.size()));
    std::nth_element(sorted.begin(), position, sorted.end());
    return *position;
  }
};

bool alike(const ncclrunVariant& one, const ncclrunVariant& other) {
  return one.algorithm == other.algorithm && one.protocol == other.protocol && one.channels == other.channels &&
         one.threads == other.threads;
}

std::vector<Candidate> candidatesOf(const Collective& collective, const Session& session) {
  std::vector<Candidate> found;
  for (uint64_t row = kNumbered;; row++) {
    ncclrunVariant variant;
    must(ncclrunCommGetVariant(session.comm(), planNumber(collective), row, &variant));
    if (variant.upToBytes != row) break;
    found.push_back({row, variant});
  }
  if (!found.empty()) return found;
  throw std::invalid_argument("the plan is not one for measuring: start this program by ncclrun tune");
}

// All times are the mean over ranks, so that every rank decides alike.
class Sizes {
 public:
  Sizes(const Options& options, Session& session, Measure& measure, const Subject& subject)
      : options_(options), session_(session), measure_(measure), subject_(subject) {}

  void run() {
    candidates_ = candidatesOf(subject_.collective, session_);
    size_t last = 0;
    for (size_t bytes = std::max<size_t>(options_.begin, 1); bytes <= options_.end; bytes *= options_.factor) {
      const size_t whole = measure_.wholeBytes(subject_.collective, subject_.type, bytes);
      if (whole > last) measureAt(whole);
      last = std::max(last, whole);
      if (bytes > options_.end / options_.factor) break;
    }
  }

 private:
  double time(const Candidate& candidate, size_t bytes, int iterations) {
    return measure_.timeAs(subject_, bytes, candidate.row, iterations);
  }

  void measureAt(size_t bytes) {
    std::vector<Candidate*> tried;
    double best = 0;
    must(ncclrunCommGetVariant(session_.comm(), planNumber(subject_.collective), bytes, &planned_));
    for (Candidate& candidate : candidates_) {
      candidate.times.clear();
      if (candidate.behind && !alike(candidate.variant, planned_)) continue;
      double alone = time(candidate, bytes, 1);
      for (int i = 1; i < kTries; i++) alone = std::min(alone, time(candidate, bytes, 1));
      candidate.times.push_back(alone);
      candidate.iterations = std::clamp(static_cast<int>(kMeasurementMicroseconds / alone), 1, options_.iterations);
      best = tried.empty() ? alone : std::min(best, alone);
      tried.push_back(&candidate);
    }
    std::erase_if(tried, [&](Candidate* candidate) {
      const bool hopeless = candidate->times[0] > kHopeless * best;
      candidate->behind = candidate->behind || (hopeless && bytes >= kLarge);
      candidate->times.clear();
      return hopeless && !alike(candidate->variant, planned_);
    });
    // Round-robin, so that other load on the machine affects all alike.
    for (int round = 0; round < options_.rounds; round++) {
      for (Candidate* one : tried) one->times.push_back(time(*one, bytes, one->iterations));
    }
    report(bytes, tried);
  }

  void report(size_t bytes, const std::vector<Candidate*>& tried) {
    double best = tried.front()->median();
    for (const Candidate* one : tried) best = std::min(best, one->median());
    for (Candidate* one : tried) {
      const double median = one->median();
      one->behind = one->behind || (bytes >= kLarge && median > kBehind * best);
      if (session_.rank() != 0) continue;
      const ncclrunVariant& variant = one->variant;
      std::printf("{\"collective\":\"%s\",\"bytes\":%zu,\"algorithm\":%u,\"protocol\":%u,", subject_.collective.name,
                  bytes, variant.algorithm, variant.protocol);
      std::printf("\"channels\":%u,\"threads\":%u,\"timeUs\":%.4f,\"spread\":%.4f,", variant.channels, variant.threads,
                  median, one->spread());
      std::printf("\"planned\":%s}\n", alike(variant, planned_) ? "true" : "false");
    }
    std::fflush(stdout);
  }

  const Options& options_;
  Session& session_;
  Measure& measure_;
  const Subject& subject_;
  std::vector<Candidate> candidates_;
  ncclrunVariant planned_ = {};  // of the size that is measured
};

}  // namespace

void measureForms(const Options& given) {
  std::vector<const Collective*> collectives;
  std::istringstream names(given.collectives);
  for (std::string name; std::getline(names, name, ',');) collectives.push_back(&collectiveNamed(name));
  Session session(given.device);
  Options options = given;
  const Limits& limits = session.isGpu() ? kOnGpu : kOnHost;
  if (options.end == 0) options.end = std::max(options.begin, limits.bytes);
  if (options.iterations == 0) options.iterations = limits.iterations;
  Measure measure(options, session);
  if (session.rank() == 0) {
    std::printf("{\"device\":\"%s\",\"ranks\":%d,\"hosts\":%d}\n", session.device(), session.ranks(), session.hosts());
    std::fflush(stdout);
  }
  LoadWatch watch(session);
  const ElementType type = elementTypesNamed("float").front();
  const Operator sum = operatorsNamed("sum").front();
  for (const Collective* collective : collectives) {
    const Subject subject = {*collective, type, sum};
    Sizes(options, session, measure, subject).run();
  }
  const std::vector<MachineLoad> load = watch.end();
  if (session.rank() == 0) std::fputs(loadLine(load).c_str(), stdout);
}
