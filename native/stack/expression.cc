#include "stack/expression.h"

#include "stack/cursor.h"

namespace ncclrun::stack {
namespace {

constexpr size_t kDepth = 32;
constexpr int kMaxSteps = 1000;  // a branch may lead back

class Machine {
 public:
  Machine(std::span<const uint8_t> code, const Registers& registers, const ByteSource& memory)
      : code_(code), cursor_(code), registers_(registers), memory_(memory) {}

  void push(uint64_t value) {
    if (depth_ == kDepth) return cursor_.fail();
    values_[depth_++] = value;
  }

  std::optional<uint64_t> run() {
    for (int step = 0; !cursor_.atEnd(); ++step) {
      if (step == kMaxSteps) return {};
      execute(cursor_.take<uint8_t>());
    }
    if (cursor_.failed() || depth_ == 0) return {};
    return values_[depth_ - 1];
  }

 private:
  uint64_t pop() {
    if (depth_ == 0) {
      cursor_.fail();
      return 0;
    }
    return values_[--depth_];
  }

  void pushRegister(uint64_t number, int64_t offset) {
    if (number >= kRegisters) return cursor_.fail();
    push(registers_.value[number] + static_cast<uint64_t>(offset));
  }

  void dereference(size_t size) {
    uint64_t value = 0;
    if (size == 0 || size > sizeof value || !memory_.read(pop(), &value, size)) return cursor_.fail();
    push(value);
  }

  void pick(size_t index) {
    if (index >= depth_) return cursor_.fail();
    push(values_[depth_ - 1 - index]);
  }

  void branch(int16_t distance) {
    const int64_t target = static_cast<int64_t>(base_ + cursor_.offset()) + distance;
    if (cursor_.failed() || target < 0 || target > static_cast<int64_t>(code_.size())) return cursor_.fail();
    base_ = static_cast<size_t>(target);
    cursor_ = Cursor(code_.subspan(base_));
  }

  void execute(uint8_t operation);
  bool executeConstant(uint8_t operation);
  void executeBinary(uint8_t operation);

  std::span<const uint8_t> code_;
  Cursor cursor_;
  size_t base_ = 0;  // of the cursor, in the code
  const Registers& registers_;
  const ByteSource& memory_;
  uint64_t values_[kDepth];
  size_t depth_ = 0;
};

bool Machine::executeConstant(uint8_t operation) {
  if (operation >= 0x30 && operation <= 0x4f) return push(operation - 0x30u), true;  // lit0 … lit31
  switch (operation) {
    case 0x03:  // addr
    case 0x0e:  // const8u
    case 0x0f:  // const8s
      return push(cursor_.take<uint64_t>()), true;
    case 0x08:
      return push(cursor_.take<uint8_t>()), true;
    case 0x09:
      return push(static_cast<uint64_t>(int64_t{cursor_.take<int8_t>()})), true;
    case 0x0a:
      return push(cursor_.take<uint16_t>()), true;
    case 0x0b:
      return push(static_cast<uint64_t>(int64_t{cursor_.take<int16_t>()})), true;
    case 0x0c:
      return push(cursor_.take<uint32_t>()), true;
    case 0x0d:
      return push(static_cast<uint64_t>(int64_t{cursor_.take<int32_t>()})), true;
    case 0x10:
      return push(cursor_.uleb()), true;
    case 0x11:
      return push(static_cast<uint64_t>(cursor_.sleb())), true;
    default:
      return false;
  }
}

void Machine::executeBinary(uint8_t operation) {
  const uint64_t right = pop();
  const uint64_t left = pop();
  const auto rightSigned = static_cast<int64_t>(right);
  const auto leftSigned = static_cast<int64_t>(left);
  switch (operation) {
    case 0x1a:
      return push(left & right);
    case 0x1c:
      return push(left - right);
    case 0x1e:
      return push(left * right);
    case 0x21:
      return push(left | right);
    case 0x22:
      return push(left + right);
    case 0x24:
      return push(right < 64 ? left << right : 0);
    case 0x25:
      return push(right < 64 ? left >> right : 0);
    case 0x26:
      return push(static_cast<uint64_t>(leftSigned >> (right < 64 ? right : 63)));
    case 0x27:
      return push(left ^ right);
    case 0x29:
      return push(leftSigned == rightSigned);
    case 0x2a:
      return push(leftSigned >= rightSigned);
    case 0x2b:
      return push(leftSigned > rightSigned);
    case 0x2c:
      return push(leftSigned <= rightSigned);
    case 0x2d:
      return push(leftSigned < rightSigned);
    case 0x2e:
      return push(leftSigned != rightSigned);
    default:
      return cursor_.fail();
  }
}

void Machine::execute(uint8_t operation) {
  if (executeConstant(operation)) return;
  if (operation >= 0x50 && operation <= 0x6f) return pushRegister(operation - 0x50u, 0);
  if (operation >= 0x70 && operation <= 0x8f) return pushRegister(operation - 0x70u, cursor_.sleb());
  switch (operation) {
    case 0x06:
      return dereference(8);
    case 0x94:
      return dereference(cursor_.take<uint8_t>());
    case 0x12:
      return pick(0);
    case 0x13:
      pop();
      return;
    case 0x14:
      return pick(1);
    case 0x15:
      return pick(cursor_.take<uint8_t>());
    case 0x16: {
      const uint64_t top = pop();
      const uint64_t next = pop();
      push(top);
      return push(next);
    }
    case 0x1f:
      return push(~pop() + 1);
    case 0x20:
      return push(~pop());
    case 0x23:
      return push(pop() + cursor_.uleb());
    case 0x28: {
      const auto distance = cursor_.take<int16_t>();
      if (pop() != 0) branch(distance);
      return;
    }
    case 0x2f:
      return branch(cursor_.take<int16_t>());
    case 0x92: {
      const uint64_t number = cursor_.uleb();
      return pushRegister(number, cursor_.sleb());
    }
    case 0x96:
      return;
    default:
      return executeBinary(operation);
  }
}

}  // namespace

std::optional<uint64_t> evaluate(std::span<const uint8_t> expression, const Registers& registers,
                                 const ByteSource& memory, std::optional<uint64_t> initial) {
  Machine machine(expression, registers, memory);
  if (initial) machine.push(*initial);
  return machine.run();
}

}  // namespace ncclrun::stack
