#include "measure.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "graph.h"

namespace {

// The engine's operator; one made for the occasion is given back at the end.
class EngineOperator {
 public:
  EngineOperator(const Subject& subject, Session& session)
      : session_(session), made_(subject.op.reduction == Reduction::mulsum), op_(subject.op.op) {
    if (!made_) return;
    std::vector<std::byte> scalar = factor(subject.type, session.rank());
    must(ncclRedOpCreatePreMulSum(&op_, scalar.data(), subject.type.type, ncclScalarHostImmediate, session.comm()));
  }
  ~EngineOperator() {
    if (made_) ncclRedOpDestroy(op_, session_.comm());
  }
  EngineOperator(const EngineOperator&) = delete;
  EngineOperator& operator=(const EngineOperator&) = delete;

  ncclRedOp_t get() const { return op_; }

 private:
  Session& session_;
  const bool made_;
  ncclRedOp_t op_;
};

}  // namespace

Measure::Measure(const Options& options, Session& session)
    : options_(options), session_(session), send_(session, options.end), receive_(session, options.end) {}

size_t Measure::parts(Extent extent) const {
  return extent == Extent::once ? 1 : static_cast<size_t>(session_.ranks());
}

Measure::Case Measure::caseOf(const Subject& subject, ncclRedOp_t op, size_t bytes, bool inPlace) const {
  const auto& [collective, type, _] = subject;
  const size_t count = bytes / type.bytes / std::max(parts(collective.sends), parts(collective.receives));
  return {subject,
          op,
          inPlace,
          count,
          parts(collective.sends) * count * type.bytes,
          parts(collective.receives) * count * type.bytes};
}

Measurement Measure::run(const Subject& subject, size_t bytes, bool inPlace) {
  const Collective& collective = subject.collective;
  const EngineOperator engineOperator(subject, session_);
  const Case one = caseOf(subject, engineOperator.get(), bytes, inPlace);
  Measurement result{};
  result.bytes = std::max(one.sendBytes, one.receiveBytes);
  result.count = one.count;
  result.inPlace = inPlace;
  const double seconds = session_.sum(timeOne(one)) / session_.ranks();
  result.microseconds = seconds * 1e6;
  result.algorithmBandwidth = static_cast<double>(result.bytes) / 1e9 / seconds;
  result.busBandwidth = result.algorithmBandwidth * collective.busFactor(session_.ranks());
  if (options_.check) result.wrong = session_.sum(wrongElements(one));
  return result;
}

// In place, the smaller buffer is this rank's part of the larger.
Measure::Place Measure::placeOf(const Case& one, int iteration) const {
  const size_t bytes = std::max(one.sendBytes, one.receiveBytes);
  const size_t positions = bytes == 0 ? 1 : std::max<size_t>(options_.end / bytes, 1);
  const size_t shift = bytes * (static_cast<size_t>(iteration) % positions);
  std::byte* receive = receive_.data() + shift;
  if (!one.inPlace) return {send_.data() + shift, receive};
  const size_t own = static_cast<size_t>(session_.rank()) * std::min(one.sendBytes, one.receiveBytes);
  if (one.sendBytes < one.receiveBytes) return {receive + own, receive};
  return {receive, one.sendBytes > one.receiveBytes ? receive + own : receive};
}

void Measure::start(const Case& one, const Place& position) {
  must(one.subject.collective.run({position.send, position.receive, one.count, one.subject.type.type, one.op,
                                   session_.rank(), session_.ranks(), options_.root, session_.comm(),
                                   session_.stream()}));
}

void Measure::repeat(const Case& one, int times) {
  for (int i = 0; i < times; i++) {
    start(one, placeOf(one, i));
    if (options_.blocking) session_.synchronize();
  }
  session_.synchronize();
}

// Seconds per operation on this rank.
double Measure::timeOne(const Case& one) {
  repeat(one, options_.warmup);
  session_.barrier();
  const auto begin = std::chrono::steady_clock::now();
  repeat(one, options_.iterations);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  session_.barrier();
  return taken.count() / options_.iterations;
}

size_t Measure::wholeBytes(const Collective& collective, const ElementType& type, size_t bytes) const {
  const size_t element = type.bytes * std::max(parts(collective.sends), parts(collective.receives));
  return bytes / element * element;
}

double Measure::timeAs(const Subject& subject, size_t bytes, uint64_t chosenAs, int iterations) {
  const Case one = caseOf(subject, subject.op.op, bytes, false);
  session_.barrier();
  double seconds = 0;
  if (session_.isGpu()) {
    seconds = secondsOfGraph(one, chosenAs, iterations);
  } else {
    const ChosenAs chosen(session_, chosenAs);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < iterations; i++) start(one, placeOf(one, i));
    session_.synchronize();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return session_.sum(seconds) / session_.ranks() / iterations * 1e6;
}

double Measure::secondsOfGraph(const Case& one, uint64_t chosenAs, int iterations) {
  const Graph graph(session_, [&] {
    const ChosenAs chosen(session_, chosenAs);
    for (int i = 0; i < iterations; i++) start(one, placeOf(one, i));
  });
  session_.barrier();
  graph.launch();  // brings it onto the GPU, lets the ranks meet, and gives us time to queue the rest
  const Moment begin(session_);
  graph.launch();
  const Moment end(session_);
  session_.synchronize();
  return begin.secondsUntil(end);
}

int64_t Measure::wrongElements(const Case& one) {
  const auto& [collective, type, op] = one.subject;
  const DataRule rule = {type, collective.reduces ? std::optional(op.reduction) : std::nullopt, session_.ranks(),
                         ++seed_};
  const size_t partBytes = one.count * type.bytes;
  const Place position = placeOf(one, 0);
  session_.clear(receive_.data(), std::max(one.sendBytes, one.receiveBytes));
  HostView sent(session_, position.send, one.sendBytes);
  for (size_t part = 0; part < parts(collective.sends); part++) {
    spread(contribution(rule, session_.rank(), static_cast<int>(part), one.count), sent.data() + part * partBytes,
           partBytes);
  }
  sent.store();
  start(one, position);
  session_.synchronize();
  int64_t wrong = 0;
  const bool receives = !collective.onlyRootReceives || session_.rank() == options_.root;
  HostView received(session_, position.receive, receives ? one.receiveBytes : 0);
  received.load();
  for (size_t part = 0; receives && part < parts(collective.receives); part++) {
    const auto expected = collective.expected(rule, options_.root, session_.rank(), static_cast<int>(part), one.count);
    wrong += countWrong(rule, expected, received.data() + part * partBytes, partBytes);
  }
  session_.barrier();
  return wrong;
}
