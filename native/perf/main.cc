// ncclrun-perf: the program whose ranks `ncclrun perf` and `ncclrun tune` start. Rank 0 writes one JSON object per
// line: what is measured, then a row per size and place (or variant, or pair of NICs). `ncclrun topo` starts it, too:
// for the network plugin of the host.
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "measure.h"
#include "network.h"
#include "options.h"
#include "session.h"
#include "variants.h"

namespace {

void printHead(const Collective& collective, const Session& session) {
  std::printf("{\"collective\":\"%s\",\"device\":\"%s\",\"ranks\":%d,\"hosts\":%d}\n", collective.name,
              session.device(), session.ranks(), session.hosts());
}

void printRow(const Subject& subject, int root, const Measurement& row) {
  std::printf("{\"bytes\":%zu,\"count\":%zu,\"type\":\"%s\",\"op\":\"%s\",\"root\":%d,\"inPlace\":%s,\"timeUs\":%.3f,",
              row.bytes, row.count, subject.type.name, subject.collective.reduces ? subject.op.name : "none",
              subject.collective.hasRoot ? root : -1, row.inPlace ? "true" : "false", row.microseconds);
  std::printf("\"algbw\":%.6f,\"busbw\":%.6f,\"wrong\":", row.algorithmBandwidth, row.busBandwidth);
  if (row.wrong.has_value()) {
    std::printf("%lld}\n", static_cast<long long>(*row.wrong));
  } else {
    std::printf("null}\n");
  }
}

// 0 is followed by one element: no factor leads away from it.
size_t nextSize(size_t bytes, const Options& options, const ElementType& type) {
  if (bytes == 0) return type.bytes;
  return bytes > options.end / options.factor ? options.end + 1 : bytes * options.factor;
}

void measureSizes(const Options& options, Session& session, Measure& measure, const Subject& subject) {
  for (size_t bytes = options.begin; bytes <= options.end; bytes = nextSize(bytes, options, subject.type)) {
    for (const bool inPlace : {false, true}) {
      if (inPlace && !subject.collective.hasInPlace) continue;
      const Measurement row = measure.run(subject, bytes, inPlace);
      if (session.rank() == 0) printRow(subject, options.root, row);
    }
    std::fflush(stdout);
  }
}

void measureAll(const Options& options) {
  const Collective& collective = collectiveNamed(options.collective);
  const auto types = elementTypesNamed(options.type);
  auto operators = operatorsNamed(options.op);
  if (!collective.reduces) operators = operators.first(1);
  // Before there is a communicator, which each rank would abort for itself: who came late would blame the first.
  const int ranks = ranksOfJob();
  if (options.root >= ranks) {
    throw std::invalid_argument("the root is " + std::to_string(options.root) + "; there are ranks 0 to " +
                                std::to_string(ranks - 1));
  }
  Session session(options.device);
  Measure measure(options, session);
  if (session.rank() == 0) printHead(collective, session);
  for (const ElementType& type : types) {
    for (const Operator& op : operators) measureSizes(options, session, measure, {collective, type, op});
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const bool tellsDisturbance = argc == 5 && std::strcmp(argv[4], "disturbance") == 0;
    if ((argc == 4 || tellsDisturbance) && std::strcmp(argv[1], "net") == 0) {
      measureNetwork(argv[2], argv[3], tellsDisturbance);
      return 0;
    }
    if (argc == 2 && std::strcmp(argv[1], "plugin") == 0) printNetworkPlugin();
    const Options options = readOptions(argc, argv);
    if (options.collective == "variants") {
      measureForms(options);
    } else {
      measureAll(options);
    }
    return 0;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "ncclrun-perf: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ncclrun-perf: %s\n", error.what());
    return 1;
  }
}
