// What ncclrun tune reads of /proc/stat.
#include "perf/processor_time.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "expect.h"

namespace {

bool isSeconds(double found, double expected) { return std::abs(found - expected) < 1e-9; }

void known() {
  // user nice system idle iowait irq softirq steal guest guest_nice
  const char* text =
      "cpu  100 20 30 5000 600 7 8 50 90 9\ncpu0 50 10 15 2500 300 3 4 25 45 4\ncpu1 50 10 15 2500 300 4 4 25 45 5\n"
      "intr 1 2 3\ncpu9 nonsense behind the first other line\n";
  const ProcessorTime time = processorTimeOf(text, 100);
  EXPECT(time.processors == 2 && isSeconds(time.busySeconds, 2.0));
}

void malformed() {
  for (const char* text : {"", "nothing", "cpu  1 2 3\ncpu0 1 2 3\n", "cpu  a b c d e f g h\ncpu0 1\n"})
    EXPECT(processorTimeOf(text, 100).processors == 0);
}

// A process that computes shows in what this machine reports.
void real() {
  const auto now = [] {
    std::ifstream file("/proc/stat");
    std::ostringstream text;
    text << file.rdbuf();
    return processorTimeOf(text.str(), sysconf(_SC_CLK_TCK));
  };
  const ProcessorTime before = now();
  EXPECT(before.processors > 0 && before.busySeconds > 0);
  const auto start = std::chrono::steady_clock::now();
  volatile unsigned spins = 0;
  while (millisecondsSince(start) < 100) spins = spins + 1;
  EXPECT(now().busySeconds > before.busySeconds);
}

}  // namespace

int main() {
  known();
  malformed();
  real();
}
