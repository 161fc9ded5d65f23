#include "base/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace ncclrun {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kStackBytes = 256 << 10;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

// A stack with an inaccessible page below it.
class Stack {
 public:
  Stack() : page_(size_t(sysconf(_SC_PAGESIZE))) {
    void* memory = mmap(nullptr, page_ + kStackBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<char*>(memory);
    if (mprotect(bottom(), kStackBytes, PROT_READ | PROT_WRITE) != 0) {
      munmap(base_, page_ + kStackBytes);
      throw std::bad_alloc();
    }
  }
  ~Stack() { munmap(base_, page_ + kStackBytes); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  char* bottom() const { return base_ + page_; }
  char* top() const { return bottom() + kStackBytes; }

 private:
  const size_t page_;
  char* base_;
};

}  // namespace

#if defined(__x86_64__)

// Saves the registers a callee must keep on the stack, stores the stack pointer in *save and continues at `load`.
// swapcontext would do, but makes two system calls each time.
extern "C" void ncclrunSwitchStack(void** save, void* load);
asm(R"(
  .text
  .p2align 4
  .hidden ncclrunSwitchStack
  .globl ncclrunSwitchStack
  .type ncclrunSwitchStack, @function
ncclrunSwitchStack:
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size ncclrunSwitchStack, .-ncclrunSwitchStack

  .p2align 4
  .type ncclrunFiberEntry, @function
ncclrunFiberEntry:
  endbr64
  movq %rbx, %rdi
  call ncclrunFiberLoop
  ud2
  .size ncclrunFiberEntry, .-ncclrunFiberEntry
  .hidden ncclrunFiberEntry
  .globl ncclrunFiberEntry
)");
extern "C" void ncclrunFiberEntry();

struct Machine {
  void* inside = nullptr;
  void* outside = nullptr;

  void prepare(Stack& stack, Fiber* fiber) {
    auto** top = reinterpret_cast<void**>(stack.top());
    // From the top: two words that keep the stack aligned at the call, the entry as return address, rbp, rbx = fiber,
    // r12 to r15.
    *--top = nullptr;
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(&ncclrunFiberEntry);
    *--top = nullptr;
    *--top = fiber;
    for (int i = 0; i < 4; i++) *--top = nullptr;
    inside = top;
  }
  void enter() { ncclrunSwitchStack(&outside, inside); }
  void leave() { ncclrunSwitchStack(&inside, outside); }
};

#else

extern "C" void ncclrunFiberLoop(Fiber* fiber);

struct Machine {
  ucontext_t inside{}, outside{};

  static void entry(unsigned high, unsigned low) {
    ncclrunFiberLoop(reinterpret_cast<Fiber*>(uintptr_t(high) << 32 | low));
  }
  void prepare(Stack& stack, Fiber* fiber) {
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack.bottom();
    inside.uc_stack.ss_size = kStackBytes;
    inside.uc_link = nullptr;
    const auto address = reinterpret_cast<uintptr_t>(fiber);
    makecontext(&inside, reinterpret_cast<void (*)()>(&entry), 2, unsigned(address >> 32), unsigned(address));
  }
  void enter() { swapcontext(&outside, &inside); }
  void leave() { swapcontext(&inside, &outside); }
};

#endif

struct Fiber::Context {
  Stack stack;
  Machine machine;
#if defined(__SANITIZE_ADDRESS__)
  void* fakeInside = nullptr;
  void* fakeOutside = nullptr;
  const void* outsideBottom = nullptr;
  size_t outsideBytes = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* threadInside = __tsan_create_fiber(0);
  void* threadOutside = nullptr;
  ~Context() { __tsan_destroy_fiber(threadInside); }
#endif

  void enter() {
#if defined(__SANITIZE_THREAD__)
    threadOutside = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(threadInside, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fakeOutside, stack.bottom(), kStackBytes);
#endif
    machine.enter();
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fakeOutside, nullptr, nullptr);
#endif
  }
  void arrived() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fakeInside, &outsideBottom, &outsideBytes);
#endif
  }
  void leave() {
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(threadOutside, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fakeInside, outsideBottom, outsideBytes);
#endif
    machine.leave();
    arrived();
  }
};

extern "C" [[gnu::visibility("hidden"), gnu::used]] void ncclrunFiberLoop(Fiber* fiber) { fiber->loop(); }

Fiber::Fiber() : context_(std::make_unique<Context>()) { context_->machine.prepare(context_->stack, this); }
Fiber::~Fiber() = default;

void Fiber::start(void (*function)(void*), void* argument) {
  function_ = function;
  argument_ = argument;
}

void Fiber::loop() {
  context_->arrived();
  for (;;) {
    function_(argument_);
    function_ = nullptr;
    context_->leave();
  }
}

void Fiber::resume() { context_->enter(); }
void Fiber::suspend() { context_->leave(); }

std::unique_ptr<Fiber> FiberPool::take() {
  if (free_.empty()) return std::make_unique<Fiber>();
  auto fiber = std::move(free_.back());
  free_.pop_back();
  return fiber;
}

void FiberPool::give(std::unique_ptr<Fiber> fiber) {
  if (free_.size() < kKept) free_.push_back(std::move(fiber));
}

}  // namespace ncclrun
