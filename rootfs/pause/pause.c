/*
 * pause: the first process of every pod. It holds the pod's namespaces, sleeps, reaps orphans and exits on SIGINT or
 * SIGTERM. It links no C library, so it is a few hundred bytes and can do nothing else.
 */
#include <asm/unistd.h>
#include <linux/signal.h>

#ifdef __aarch64__
static long call(long number, long a, long b, long c, long d)
{
	register long which __asm__("x8") = number;
	register long first __asm__("x0") = a;
	register long second __asm__("x1") = b;
	register long third __asm__("x2") = c;
	register long fourth __asm__("x3") = d;

	__asm__ volatile("svc #0" : "+r"(first) : "r"(which), "r"(second), "r"(third), "r"(fourth) : "memory");
	return first;
}
#else
static long call(long number, long a, long b, long c, long d)
{
	long result;
	register long fourth __asm__("r10") = d;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
	return result;
}
#endif

__attribute__((noreturn)) void _start(void)
{
	/* Blocked signals stay pending until sigtimedwait takes them, so none is lost between two waits. */
	unsigned long wanted = 1UL << (SIGINT - 1) | 1UL << (SIGTERM - 1) | 1UL << (SIGCHLD - 1);

	call(__NR_rt_sigprocmask, SIG_BLOCK, (long)&wanted, 0, sizeof wanted);
	for (;;) {
		long signal = call(__NR_rt_sigtimedwait, (long)&wanted, 0, 0, sizeof wanted);

		if (signal == SIGINT || signal == SIGTERM)
			call(__NR_exit_group, 0, 0, 0, 0);
		while (call(__NR_wait4, -1, 0, 1 /* WNOHANG */, 0) > 0)
			;
	}
}
