// The stand-in in a test's own process: opened once, configured anew for each test, and empty after it.
#pragma once
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "support/check.h"
#include "verbs/client/client.h"

namespace stand_in_verbs {

struct StandIn {
  Library library;
  int (*plantText)(const char*) = nullptr;
  int (*configureText)(const char*) = nullptr;
  long (*countOf)(const char*) = nullptr;
  long (*settingsOf)(const char*, char*, size_t) = nullptr;

  static const StandIn& get() {
    static const StandIn only = [] {
      StandIn opened;
      void* handle = nullptr;
      opened.library = openLibrary(NCCLRUN_TEST_VERBS, &handle);
      opened.plantText = reinterpret_cast<int (*)(const char*)>(dlsym(handle, "stand_in_verbs_plant"));
      opened.configureText = reinterpret_cast<int (*)(const char*)>(dlsym(handle, "stand_in_verbs_configure"));
      opened.countOf = reinterpret_cast<long (*)(const char*)>(dlsym(handle, "stand_in_verbs_count"));
      opened.settingsOf =
          reinterpret_cast<long (*)(const char*, char*, size_t)>(dlsym(handle, "stand_in_verbs_settings"));
      return opened;
    }();
    return only;
  }
};

inline const Library& verbs() { return StandIn::get().library; }
inline int plant(const std::string& text) { return StandIn::get().plantText(text.c_str()); }
inline long count(const char* what) { return StandIn::get().countOf(what); }

// Of the connected queue pairs of a device, a line each.
inline std::string settings(const char* device) {
  std::string text(1 << 16, '\0');
  const long bytes = StandIn::get().settingsOf(device, text.data(), text.size());
  EXPECT(bytes >= 0);
  text.resize(size_t(std::max(bytes, 0L)));
  return text;
}

// In a test before all else: devices as configured, and at its end nothing may be left.
struct Configured {
  explicit Configured(const char* text = "") { EXPECT_MORE(StandIn::get().configureText(text) == 0, text); }
  ~Configured() {
    for (const char* const what : {"contexts", "domains", "regions", "channels", "completion queues", "queue pairs"}) {
      EXPECT_MORE(count(what) == 0, std::to_string(count(what)) + " " + what);
    }
  }
};

inline constexpr size_t kBufferBytes = 1u << 20;
inline constexpr uint32_t kSmall = 64;

// A connection between the two devices.
struct Both {
  explicit Both(const Terms& terms = {}, int capacity = 256, bool hasChannel = false)
      : a(verbs(), "sia", kBufferBytes, capacity, 1, hasChannel),
        b(verbs(), "sib", kBufferBytes, capacity, 1, hasChannel) {
    EXPECT(connectBoth(a, b, terms) == 0);
  }
  // A message with an immediate value that arrives.
  bool isWhole() {
    return b.want() == 0 && a.post(kWriteImmediate, b.self(), kSmall) == 0 && b.status() == 0 && a.status() == 0;
  }
  End a, b;
};

}  // namespace stand_in_verbs
