// What may have disturbed a measurement on this host: processors that others used, and packets that TCP sent again
// although they had arrived.
#pragma once
#include <cstdint>
#include <string>

struct Disturbance {
  double seconds = 0;            // of a clock that only goes forward
  double waitedSeconds = 0;      // this thread could have run, and had no processor
  uint64_t needlessPackets = 0;  // sent again by TCP on this host, though the receiver had them (RFC 2883)
};

// Since this thread, the host and the clock began: a difference of two is of use.
Disturbance disturbanceSoFar();

// `text`: the content of /proc/net/netstat. 0 where the kernel does not count.
uint64_t needlessPacketsIn(const std::string& text);
// `text`: the content of /proc/thread-self/schedstat. 0 where the kernel does not count.
double waitedSecondsIn(const std::string& text);
