#include "base/thread.h"

#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>

#include "base/limits.h"

namespace ncclrun {

std::thread startThread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread, which so never has a moment without it
  struct Restore {
    sigset_t* mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, mask, nullptr); }
  } restore{&before};
  try {
    std::thread thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& refused) {
    const int error = refused.code().value();
    throw std::system_error(refused.code(), std::string("thread ") + name + limitBehind(error));
  }
}

}  // namespace ncclrun
