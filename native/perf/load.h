// What the processors of a machine do beside this measurement.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "processor_time.h"
#include "session.h"

// The mean number of processors that others kept busy on one machine.
struct MachineLoad {
  std::string host;
  int processors;
  double others;
};

// From its beginning to its end, on all ranks' machines. Both are collective.
class LoadWatch {
 public:
  explicit LoadWatch(Session& session);
  // By machine, in the order of their first ranks; without those whose /proc/stat cannot be read.
  std::vector<MachineLoad> end();

 private:
  struct Moment {
    ProcessorTime machine;
    double ownSeconds;
    double seconds;
  };
  static Moment now();

  Session& session_;
  Moment began_;
};

// A line of JSON.
std::string loadLine(const std::vector<MachineLoad>& machines);
