/* Entry point of a release's programs. Before glibc 2.34 the program itself passed the function that runs its
 * constructors to __libc_start_main. The start files of a newer glibc pass none, so an older glibc would call main
 * without running the constructors. Newer versions still accept the function (__libc_start_main@GLIBC_2.2.5). */
typedef void Constructor(int argc, char** argv, char** environment);
extern Constructor* const __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor* const __init_array_end[] __attribute__((visibility("hidden")));

__attribute__((used)) static void construct(int argc, char** argv, char** environment) {
  for (Constructor* const* one = __init_array_start; one != __init_array_end; one++) (*one)(argc, argv, environment);
}

/* Calls __libc_start_main(main, argc, argv, init, fini, rtld_fini, stack_end). The processor's ABI defines the stack
 * and the registers at process entry. */
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
