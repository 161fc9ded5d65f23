// ncclrun-perf: the program whose ranks `ncclrun perf` starts. Rank 0 writes one JSON object per line: what is
// measured, then a row per size and place.
#include <cstdio>
#include <exception>

#include "measure.h"
#include "options.h"
#include "session.h"

namespace {

void printHead(const Measure& measure, const Session& session) {
  std::printf("{\"collective\":\"%s\",\"device\":\"host\",\"ranks\":%d,\"hosts\":%d}\n", measure.collective().name,
              session.ranks(), session.hosts());
}

void printRow(const Measure& measure, const Measurement& row) {
  std::printf("{\"bytes\":%zu,\"count\":%zu,\"type\":\"%s\",\"op\":\"%s\",\"root\":%d,\"inPlace\":%s,\"timeUs\":%.3f,",
              row.bytes, row.count, measure.type().name, measure.collective().reduces ? measure.op().name : "none",
              measure.collective().root, row.inPlace ? "true" : "false", row.microseconds);
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

void measureAll(const Options& options) {
  Session session;
  Measure measure(options, session);
  const bool prints = session.rank() == 0;
  if (prints) printHead(measure, session);
  for (size_t bytes = options.begin; bytes <= options.end; bytes = nextSize(bytes, options, measure.type())) {
    for (const bool inPlace : {false, true}) {
      const Measurement row = measure.run(bytes, inPlace);
      if (prints) printRow(measure, row);
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    measureAll(readOptions(argc, argv));
    return 0;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "ncclrun-perf: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ncclrun-perf: %s\n", error.what());
    return 1;
  }
}
