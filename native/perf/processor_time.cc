#include "processor_time.h"

#include <sstream>

ProcessorTime processorTimeOf(const std::string& text, long ticksPerSecond) {
  ProcessorTime found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("cpu", 0) != 0) break;
    if (line.rfind("cpu ", 0) != 0) {
      ++found.processors;
      continue;
    }
    // user nice system idle iowait irq softirq steal
    double ticks[8] = {};
    std::istringstream numbers(line.substr(4));
    for (double& one : ticks) numbers >> one;
    if (!numbers) return {};
    found.busySeconds = (ticks[0] + ticks[1] + ticks[2] + ticks[7]) / static_cast<double>(ticksPerSecond);
  }
  return found;
}
