/* A check of a monitoring server, as cheap as one can be: it says that all is well. Three system calls, and one more with
 * HOLD_MS: then it takes so many milliseconds, as one does that asks something over a network. */
static const char ANSWER[] = "OK - all is well|time=0.1\n";

#ifdef HOLD_MS
static const struct {
	long seconds, nanoseconds;
} HOLD = {0, HOLD_MS * 1000000L};
#endif

static long call(long number, long first, long second, long third)
{
#if defined(__x86_64__)
	long answer;
	__asm__ volatile("syscall" : "=a"(answer) : "a"(number), "D"(first), "S"(second), "d"(third) : "rcx", "r11", "memory");
	return answer;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = first, x1 __asm__("x1") = second, x2 __asm__("x2") = third;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#else
#error "system calls of this architecture are missing"
#endif
}

#if defined(__x86_64__)
enum { WRITE = 1, NANOSLEEP = 35, EXIT_GROUP = 231 };
#else
enum { WRITE = 64, EXIT_GROUP = 94, NANOSLEEP = 101 };
#endif

void _start(void)
{
#ifdef HOLD_MS
	call(NANOSLEEP, (long)&HOLD, 0, 0);
#endif
	call(WRITE, 1, (long)ANSWER, sizeof ANSWER - 1);
	call(EXIT_GROUP, 0, 0, 0);
	__builtin_unreachable();
}
