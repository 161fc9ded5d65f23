// What doctor's measurements read of the kernel beside what they measure.
#include "perf/disturbance.h"

#include "expect.h"

namespace {

void needless() {
  EXPECT(needlessPacketsIn("TcpExt: TW TCPDSACKRecv TCPDSACKOfoRecv\nTcpExt: 9 3 4\n") == 7);
  EXPECT(needlessPacketsIn("IpExt: A\nIpExt: 1\nTcpExt: TCPDSACKRecv TCPDSACKRecvSegs\nTcpExt: 3 12\n") == 12);
  for (const char* text : {"", "TcpExt:", "TcpExt: TCPDSACKRecv\n", "nothing\nof use\n"})
    EXPECT(needlessPacketsIn(text) == 0);
}

void waited() {
  EXPECT(waitedSecondsIn("5 2500000000 7\n") == 2.5);
  EXPECT(waitedSecondsIn("") == 0);
}

void real() {
  const Disturbance before = disturbanceSoFar(), after = disturbanceSoFar();
  EXPECT(after.seconds >= before.seconds && after.waitedSeconds >= before.waitedSeconds);
}

}  // namespace

int main() {
  needless();
  waited();
  real();
}
