#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "guardian/channel.h"

using ncclrun::guardian::Channel;
using ncclrun::guardian::Frame;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) abort();
  const ssize_t sent = send(ends[1], data, size, MSG_DONTWAIT);
  close(ends[1]);
  Channel channel(ends[0]);
  size_t taken = 0;
  for (bool open = true; open;) {
    open = channel.receive();
    Frame frame;
    for (Channel::Next next; (next = channel.next(frame)) != Channel::Next::none;) {
      if (next == Channel::Next::garbage) {
        open = false;
        break;
      }
      taken += sizeof frame.header + frame.payload.size();
    }
  }
  close(ends[0]);
  if (sent >= 0 && taken > static_cast<size_t>(sent)) abort();
  return 0;
}
