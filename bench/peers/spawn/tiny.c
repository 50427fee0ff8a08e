/* Makes one system call: it ends. The status shows that it was this program, and not a child that failed. */
void _start(void)
{
#if defined(__x86_64__)
	__asm__ volatile("syscall" : : "a"(231L), "D"(7L));
#elif defined(__aarch64__)
	register long number __asm__("x8") = 94;
	register long status __asm__("x0") = 7;
	__asm__ volatile("svc 0" : : "r"(number), "r"(status));
#else
#error "exit_group for this architecture is missing"
#endif
	__builtin_unreachable();
}
