// What the processors of this machine have done.
#pragma once
#include <string>

// Processor time since the boot of what /proc/stat counts: other machines' share of ours (steal) included, interrupts
// and idle time not.
struct ProcessorTime {
  double busySeconds = 0;
  int processors = 0;
};

// `text`: the content of /proc/stat. 0 processors where it is malformed.
ProcessorTime processorTimeOf(const std::string& text, long ticksPerSecond);
