// What the double keeps of comms and requests.
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "net.h"
#include "net/plugin/abi.h"

// The example plugin's table, under another name than its own.
extern "C" netTable exampleTable;

namespace ncclrun::test::doubled {

extern ncclrun::net::plugin::abi::Log logOf;
extern ncclrun::net::plugin::abi::Profiler profilerOf;

struct Comm;

struct Region {
  bool isDevice = false;
};

struct Request {
  Comm* comm = nullptr;
  void* core = nullptr;  // the example's; null: a flush
  long index = 0;
  int count = 0;
  long tests = 0;
  bool isCoreDone = false, isDone = false;
  std::array<void*, 8> data{};
  std::array<std::vector<char>, 8> shadows;  // of buffers in GPU memory
  std::array<bool, 8> isDevice{};
  std::array<int, 8> sizes{};
  void* event = nullptr;
};

struct Comm {
  void* core = nullptr;
  bool sends = false;
  bool isDead = false;  // a transfer failed
  std::atomic<std::thread::id> owner{};
  long nulls = 0;  // requests still to be refused
  std::array<const void*, 8> refused{};
  std::vector<std::unique_ptr<Request>> requests;  // also those that are done: nobody may test them again
  std::deque<Request*> open;
  std::set<void*> regions;
  std::map<void*, std::vector<char>> invisible;  // received into GPU memory and not flushed
};

// Aborts unless the same thread has used the comm before.
void checkThread(Comm& comm);

}  // namespace ncclrun::test::doubled
