// One object for each thread, that a thread may also use after its thread_local destructors have run: the main thread's
// run before the program's exit handlers and the destructors of its statics, which may call us.
#pragma once

namespace ncclrun {

template <typename Object>
Object& threadOwned() {
  thread_local Object* object = nullptr;
  thread_local struct Ending {
    bool armed = false;
    ~Ending() {
      delete object;
      object = nullptr;
    }
  } ending;
  if (object == nullptr) {
    object = new Object;  // after the destructors: stays until the process is gone
    ending.armed = true;
  }
  return *object;
}

}  // namespace ncclrun
