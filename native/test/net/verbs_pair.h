// Two verbs networks of one process and a connection between them.
#pragma once
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "net/verbs/verbs_network.h"
#include "support/check.h"

namespace ncclrun::test {

// A failure that leaves nothing to test.
inline void ok(const Status& status, int line) {
  EXPECT_MORE(status.ok(), "line " + std::to_string(line) + ": " + status.sentence);
  if (!status.ok()) std::_Exit(1);
}
#define OK(call) ncclrun::test::ok(call, __LINE__)

inline std::unique_ptr<net::VerbsNetwork> openVerbs(net::VerbsConfig config) {
  std::unique_ptr<net::VerbsNetwork> made;
  OK(net::VerbsNetwork::make(std::move(config), made));
  return made;
}

// Messages go from `here` to `there`.
struct VerbsPair {
  std::unique_ptr<net::VerbsNetwork> here, there;
  std::unique_ptr<net::Listener> listener;
  std::unique_ptr<net::Connector> connector;
  std::unique_ptr<net::Sender> sender;
  std::unique_ptr<net::Receiver> receiver;

  VerbsPair(std::unique_ptr<net::VerbsNetwork> from, std::unique_ptr<net::VerbsNetwork> to)
      : here(std::move(from)), there(std::move(to)) {
    net::Handle handle = {};
    OK(there->listen(0, handle, listener));
    OK(here->connect(0, handle, connector));
    while (sender == nullptr || receiver == nullptr) {
      if (sender == nullptr) OK(connector->connect(sender));
      if (receiver == nullptr) OK(listener->accept(receiver));
    }
  }
};

}  // namespace ncclrun::test
