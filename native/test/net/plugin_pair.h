// Plugins to test with, and two sides of a connection over one of them in this process.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "expect.h"
#include "net/net.h"
#include "net/plugin/backend.h"
#include "net/plugin/load.h"

namespace ncclrun::test {

using net::Buffer;
using net::Registration;

inline std::string pluginPath(const std::string& name) {
  return std::string(NCCLRUN_TEST_PLUGINS) + "/libnccl-net-" + name + ".so";
}

// Before the double is loaded.
inline void plant(const char* behaviour) { setenv("NCCLRUN_NET_DOUBLE", behaviour, 1); }

// What the double at `path`, which is loaded, has counted.
inline long counted(const std::string& path, const char* what) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  EXPECT(library != nullptr);
  const auto count = reinterpret_cast<long (*)(const char*)>(dlsym(library, "netDoubleCount"));
  EXPECT(count != nullptr);
  const long number = count(what);
  dlclose(library);
  return number;
}

inline void expectOk(const Status& status, int line) {
  if (!status.ok()) failTest(__FILE__, line, status.sentence);
}
#define OK(call) ncclrun::test::expectOk(call, __LINE__)

inline void expectWords(const Status& status, ncclResult_t code, const std::string& words, int line) {
  if (status.code == code && status.sentence.find(words) != std::string::npos) return;
  failTest(__FILE__, line,
           std::to_string(status.code) + " \"" + status.sentence + "\", expected " + std::to_string(code) + " \"" +
               words + "\"");
}
#define REFUSED(call, code, words) ncclrun::test::expectWords(call, code, words, __LINE__)

struct Pair {
  std::string path;
  std::unique_ptr<net::Network> network;
  std::unique_ptr<net::Listener> listener;
  std::unique_ptr<net::Connector> connector;
  std::unique_ptr<net::Sender> sender;
  std::unique_ptr<net::Receiver> receiver;

  explicit Pair(const std::string& name, uint64_t timeout = net::plugin::kCallTimeout) : path(pluginPath(name)) {
    net::plugin::Plugin* plugin = nullptr;
    OK(net::plugin::openPlugin(path, plugin));
    OK(net::plugin::makeNetwork(*plugin, 7, network, timeout));
    net::Handle handle;
    OK(network->listen(0, handle, listener));
    OK(network->connect(0, handle, connector));
  }

  // One poll of both sides: the first error.
  Status step() {
    if (sender == nullptr) {
      if (Status status = connector->connect(sender); !status.ok()) return status;
    }
    return receiver == nullptr ? listener->accept(receiver) : Status();
  }
  void establish() {
    while (sender == nullptr || receiver == nullptr) OK(step());
  }
  long count(const char* what) const { return counted(path, what); }
};

inline std::unique_ptr<Pair> establishedPair(const std::string& name) {
  auto pair = std::make_unique<Pair>(name);
  pair->establish();
  return pair;
}

// Memory that is registered with one side.
struct Memory {
  std::vector<char> bytes;
  net::Connection& connection;
  Registration registration;

  Memory(net::Connection& side, size_t size, net::MemoryType type = net::MemoryType::host)
      : bytes(size + 1), connection(side) {
    OK(side.registerMemory({bytes.data(), bytes.size(), type}, registration));
  }
  ~Memory() { OK(connection.deregisterMemory(registration)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

inline void fill(std::vector<char>& bytes, unsigned seed) {
  for (size_t i = 0; i < bytes.size(); i++) bytes[i] = char((i * 131 + seed * 31 + (i >> 8)) & 0xff);
}

// Waits for a request. The other side's oldest one is moved too, where there is one.
inline Status await(net::Connection& side, net::Request* request, std::span<size_t> sizes = {}) {
  bool done = false;
  while (!done) {
    if (Status status = side.test(request, done, sizes); !status.ok()) return status;
  }
  return {};
}

// One message, by sizes and content; `capacity` of its buffer.
inline void transfer(Pair& pair, size_t bytes, size_t capacity, unsigned seed) {
  Memory from(*pair.sender, bytes), to(*pair.receiver, capacity);
  fill(from.bytes, seed);
  net::Request *sending = nullptr, *receiving = nullptr;
  const Buffer group[] = {{to.bytes.data(), capacity, 5, to.registration}};
  while (receiving == nullptr) OK(pair.receiver->irecv(group, receiving));
  while (sending == nullptr) OK(pair.sender->isend(from.bytes.data(), bytes, 5, from.registration, sending));
  size_t received = 0, sent = 0;
  for (bool isSent = false, isReceived = false; !isSent || !isReceived;) {
    if (!isSent) OK(pair.sender->test(sending, isSent, {&sent, 1}));
    if (!isReceived) OK(pair.receiver->test(receiving, isReceived, {&received, 1}));
  }
  EXPECT(received == bytes && sent == bytes);
  EXPECT(std::memcmp(from.bytes.data(), to.bytes.data(), bytes) == 0);
}

}  // namespace ncclrun::test
