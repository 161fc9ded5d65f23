// A growing first-in first-out buffer of bytes: what was received and not yet understood, what waits to be sent, a line
// not yet whole.
#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>

namespace ncclrun::guardian {

class ByteQueue {
 public:
  const char* data() const { return storage_.get() + begin_; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }

  // Room for `bytes` more at the back. What the caller writes there counts from commit() on; the next call of prepare()
  // may move it.
  char* prepare(size_t bytes) {
    if (begin_ == end_) begin_ = end_ = 0;
    if (capacity_ - end_ < bytes) makeRoom(bytes);
    return storage_.get() + end_;
  }
  void commit(size_t bytes) { end_ += bytes; }

  void append(const void* bytes, size_t count) {
    if (count == 0) return;
    memcpy(prepare(count), bytes, count);
    commit(count);
  }
  void consume(size_t bytes) { begin_ += bytes; }
  // Forgets the content and gives its memory back.
  void clear() {
    storage_.reset();
    begin_ = end_ = capacity_ = 0;
  }

 private:
  void makeRoom(size_t bytes) {
    const size_t held = size();
    if (held + bytes > capacity_) {
      capacity_ = (held + bytes) * 2;
      std::unique_ptr<char, Free> larger(static_cast<char*>(malloc(capacity_)));
      if (!larger) abort();  // the kernel then ends the ranks: they have PR_SET_PDEATHSIG
      if (held > 0) memcpy(larger.get(), data(), held);
      storage_ = std::move(larger);
    } else {
      memmove(storage_.get(), data(), held);
    }
    begin_ = 0;
    end_ = held;
  }

  struct Free {
    void operator()(char* memory) const { free(memory); }
  };
  std::unique_ptr<char, Free> storage_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t capacity_ = 0;
};

}  // namespace ncclrun::guardian
