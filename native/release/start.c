/* Where a release's programs begin. Before glibc 2.34 a program brought the function that runs its constructors; the C
 * compiler's own beginning, made for a newer glibc, brings none, and an older glibc would run main without them. A
 * newer one still takes the function (__libc_start_main of version 2.2.5). */
typedef void Constructor(int argc, char** argv, char** environment);
extern Constructor* const __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor* const __init_array_end[] __attribute__((visibility("hidden")));

__attribute__((used)) static void construct(int argc, char** argv, char** environment) {
  for (Constructor* const* one = __init_array_start; one != __init_array_end; one++) (*one)(argc, argv, environment);
}

/* __libc_start_main(main, argc, argv, init, fini, end of the dynamic linker, end of the stack), as the processor's ABI
 * has the stack and the registers of a new process. */
#if defined(__x86_64__)
__asm__(
    ".globl ncclrunStart\n"
    ".hidden ncclrunStart\n"
    ".type ncclrunStart,@function\n"
    "ncclrunStart:\n"
    "  xor %ebp, %ebp\n"
    "  mov %rdx, %r9\n"
    "  pop %rsi\n"
    "  mov %rsp, %rdx\n"
    "  and $-16, %rsp\n"
    "  push %rax\n"
    "  push %rsp\n"
    "  xor %r8d, %r8d\n"
    "  lea construct(%rip), %rcx\n"
    "  mov main@GOTPCREL(%rip), %rdi\n"
    "  call *__libc_start_main@GOTPCREL(%rip)\n"
    "  hlt\n");
#elif defined(__aarch64__)
__asm__(
    ".globl ncclrunStart\n"
    ".hidden ncclrunStart\n"
    ".type ncclrunStart,%function\n"
    "ncclrunStart:\n"
    "  mov x29, #0\n"
    "  mov x30, #0\n"
    "  mov x5, x0\n"
    "  ldr x1, [sp]\n"
    "  add x2, sp, #8\n"
    "  mov x6, sp\n"
    "  adrp x0, :got:main\n"
    "  ldr x0, [x0, #:got_lo12:main]\n"
    "  adrp x3, construct\n"
    "  add x3, x3, #:lo12:construct\n"
    "  mov x4, #0\n"
    "  bl __libc_start_main\n"
    "  bl abort\n");
#endif
