// The members of a group over a collective network, each in a thread of this process.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/collective_network.h"
#include "net/plugin_pair.h"

namespace ncclrun::test {

// One member, and what its thread uses.
struct Member {
  uint32_t rank = 0, members = 0;
  std::unique_ptr<net::Network> network;
  std::unique_ptr<net::CollectiveNetwork> collective;
  std::unique_ptr<net::CollectiveListener> listener;
  std::unique_ptr<net::CollectiveGroup> group;

  Status connect(std::span<const net::Handle> handles) {
    while (group == nullptr) {
      if (Status status = listener->connect(handles, rank, group); !status.ok()) return status;
      std::this_thread::yield();
    }
    return {};
  }
  Status await(net::Request* request) {
    for (bool done = false; !done;) {
      if (Status status = group->test(request, done); !status.ok()) return status;
      if (!done) std::this_thread::yield();
    }
    return {};
  }
};

// Memory that is registered with a group.
struct GroupMemory {
  net::CollectiveGroup& group;
  std::vector<char> bytes;
  net::Registration registration;

  GroupMemory(net::CollectiveGroup& of, size_t size, net::MemoryType type = net::MemoryType::host)
      : group(of), bytes(size + 1) {
    OK(group.registerMemory({bytes.data(), bytes.size(), type}, registration));
  }
  ~GroupMemory() { OK(group.deregisterMemory(registration)); }
  GroupMemory(const GroupMemory&) = delete;
  GroupMemory& operator=(const GroupMemory&) = delete;
  net::RegisteredBuffer buffer(size_t offset = 0) { return {bytes.data() + offset, registration}; }
};

struct Members {
  std::vector<Member> all;
  std::vector<net::Handle> handles;
  std::string path;  // of the plugin, where it is one's

  // make: makes the member's collective network.
  Members(uint32_t count, const std::function<void(Member&)>& make) : all(count), handles(count) {
    for (uint32_t rank = 0; rank < count; rank++) {
      Member& member = all[rank];
      member.rank = rank;
      member.members = count;
      make(member);
      EXPECT(member.collective != nullptr);
      OK(member.collective->listen(0, handles[rank], member.listener));
    }
  }
  Members(const std::string& plugin, uint32_t count, uint64_t timeout = net::plugin::kCallTimeout)
      : Members(count, [&](Member& member) {
          net::plugin::Plugin* opened = nullptr;
          OK(net::plugin::openPlugin(pluginPath(plugin), opened));
          OK(net::plugin::makeNetwork(*opened, 7, member.network, timeout));
          OK(member.network->makeCollective(member.collective));
        }) {
    path = pluginPath(plugin);
  }

  // Runs `body` for each member in a thread of its own.
  void each(const std::function<void(Member&)>& body) {
    std::vector<std::thread> threads;
    for (Member& member : all) threads.emplace_back([&body, &member] { body(member); });
    for (std::thread& thread : threads) thread.join();
  }
  // The same once they are connected. The member's thread closes its group.
  void connected(const std::function<void(Member&)>& body) {
    each([&](Member& member) {
      OK(member.connect(handles));
      body(member);
      member.group.reset();
    });
  }
  long count(const char* what) const { return counted(path, what); }
};

}  // namespace ncclrun::test
