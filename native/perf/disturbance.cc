#include "disturbance.h"

#include <charconv>
#include <chrono>
#include <fstream>
#include <sstream>

namespace {

std::string kernelText(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// 0 for what is no number: nobody relies on the kernel's text.
uint64_t numberIn(const std::string& word) {
  uint64_t number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

}  // namespace

uint64_t needlessPacketsIn(const std::string& text) {
  std::istringstream lines(text);
  std::string names, values;
  while (std::getline(lines, names) && std::getline(lines, values)) {
    if (names.rfind("TcpExt:", 0) != 0) continue;
    std::istringstream nameWords(names), valueWords(values);
    uint64_t answers = 0, packets = 0;
    bool countsPackets = false;
    std::string name, value;
    while (nameWords >> name && valueWords >> value) {
      if (name == "TCPDSACKRecv" || name == "TCPDSACKOfoRecv") answers += numberIn(value);
      if (name == "TCPDSACKRecvSegs") countsPackets = true, packets = numberIn(value);
    }
    // Kernels before 5.10 count answers only, of which one may tell of several packets.
    return countsPackets ? packets : answers;
  }
  return 0;
}

double waitedSecondsIn(const std::string& text) {
  std::istringstream words(text);
  double ran = 0, waited = 0;
  return words >> ran >> waited ? waited / 1e9 : 0;
}

Disturbance disturbanceSoFar() {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return {.seconds = now.count(),
          .waitedSeconds = waitedSecondsIn(kernelText("/proc/thread-self/schedstat")),
          .needlessPackets = needlessPacketsIn(kernelText("/proc/net/netstat"))};
}
