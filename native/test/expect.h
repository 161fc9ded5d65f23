// Checks of the native tests: a failed one says where and ends the process with status 1.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "nccl.h"

[[noreturn]] inline void failTest(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  std::_Exit(1);
}

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) failTest(__FILE__, __LINE__, "not so: " #condition); \
  } while (false)

// The call returns `code`, and if that is an error its sentence contains `words`.
#define EXPECT_RESULT(call, code, words) expectResult(__FILE__, __LINE__, #call, call, code, words)

inline void expectResult(const char* file, int line, const char* call, ncclResult_t result, ncclResult_t code,
                         const std::string& words) {
  const std::string sentence = ncclGetLastError(nullptr);
  if (result == code && (code == ncclSuccess || sentence.find(words) != std::string::npos)) return;
  failTest(file, line,
           std::string(call) + " = " + std::to_string(result) + " \"" + sentence + "\", expected " +
               std::to_string(code) + " \"" + words + "\"");
}

inline double millisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Runs `body` in a process of its own: the engine's connection to its agent is one per process. False if it failed.
template <typename Body>
bool scenario(const char* name, Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);  // a hang ends as a failure
    body();
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) std::fprintf(stderr, "FAILED %s (wait status 0x%x)\n", name, static_cast<unsigned>(status));
  return status == 0;
}
