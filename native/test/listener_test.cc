// Connections from other hosts are let in, also after descriptors had run out.
#include "net/socket/listener.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstring>
#include <future>

#include "base/limits.h"
#include "support/check.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;

namespace {

// The next descriptor would have this number.
rlim_t nextDescriptor() {
  const Descriptor next(dup(STDERR_FILENO));
  EXPECT(next.valid());
  return rlim_t(next.get());
}

// While it lives, no descriptor can be had.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{nextDescriptor(), before_.rlim_max};
    EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// The proxy handles what happened before it, then this.
struct Mark final : Pollable {
  Mark() : descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  void onEvents(uint32_t) override { handled.set_value(); }
  void await() {
    const uint64_t one = 1;
    EXPECT(write(descriptor.get(), &one, sizeof one) == sizeof one);
    handled.get_future().wait();
  }
  Descriptor descriptor;
  std::promise<void> handled;
};

void connectTo(const Descriptor& client, uint32_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  socket::Hello hello{};
  hello.from = 7;
  EXPECT(send(client.get(), &hello, sizeof hello, 0) == ssize_t(sizeof hello));
}

}  // namespace

TEST(the_listener_accepts_a_connection_that_came_while_there_was_no_descriptor) {
  Status why;
  const auto proxy = Proxy::shared(why);
  EXPECT(why.ok());
  uint32_t port = 0;
  Descriptor listening(makeListener(port));
  std::promise<uint32_t> admitted;
  Listener listener(
      proxy, std::move(listening), [&](const socket::Hello& hello, Descriptor&) { admitted.set_value(hello.from); },
      [](const Status&) {});
  EXPECT(listener.start().ok());
  const Descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Mark mark;
  EXPECT(proxy->add(mark.descriptor.get(), EPOLLIN, mark).ok());
  {
    const NoDescriptors none;
    connectTo(client, port);
    mark.await();
  }
  EXPECT(admitted.get_future().get() == 7);  // nobody else comes
  proxy->remove(mark.descriptor.get(), mark);
}

TEST(a_process_that_needs_more_open_files_raises_its_soft_limit) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{64, before.rlim_max};
  EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
  prepareOpenFiles(200);
  rlimit after{};
  getrlimit(RLIMIT_NOFILE, &after);
  EXPECT(after.rlim_cur >= 264 && after.rlim_cur < 600);
}

TEST(a_process_whose_hard_limit_is_too_small_says_how_many_open_files_it_needs) {
  const rlimit few{80, 80};
  EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
  prepareOpenFiles(4000);
  EXPECT(limitBehind(EMFILE).starts_with(": this process may open 80 files and needs about 4"));
}

TEST_MAIN
