/**
 * The system calls of an unprivileged service (linux.seccomp of the runtime specification). It is an allow list: everything that
 * user space programs need on a 64-bit machine, and nothing that reconfigures the kernel, loads code into it, creates namespaces
 * or inspects other processes. A capability adds its calls.
 */
import { constants } from 'node:os'

/** Compares all 64 bits of an argument with a 32-bit value: equal, less or equal; or masked with `value`, equal to `valueTwo`. */
interface Comparison {
  readonly index: number
  readonly value: number
  readonly valueTwo?: number
  readonly op: 'SCMP_CMP_EQ' | 'SCMP_CMP_LT' | 'SCMP_CMP_MASKED_EQ'
}

/** One rule: the action for these calls if all comparisons match. */
interface Rule {
  readonly names: readonly string[]
  readonly action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO'
  readonly errnoRet?: number
  readonly args?: readonly Comparison[]
}

/** `linux.seccomp`. */
export interface SeccompProfile {
  readonly defaultAction: 'SCMP_ACT_ERRNO'
  readonly architectures: readonly string[]
  readonly syscalls: readonly Rule[]
}

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '')

const files = `
  access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 fallocate
  fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr
  fstat fstatfs fsync ftruncate futimesat getcwd getdents getdents64 getxattr getxattrat inotify_add_watch inotify_init
  inotify_init1 inotify_rm_watch ioctl lchown lgetxattr link linkat listmount listxattr listxattrat llistxattr lremovexattr lseek
  lsetxattr lstat memfd_create mkdir mkdirat mknod mknodat name_to_handle_at newfstatat open openat openat2 pipe pipe2 pread64
  preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv removexattr removexattrat rename renameat
  renameat2 rmdir sendfile setxattr setxattrat splice stat statfs statmount statx symlink symlinkat sync sync_file_range
  syncfs tee truncate umask unlink unlinkat utime utimensat utimes vmsplice write writev`

const waiting = `
  epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 io_cancel io_destroy io_getevents
  io_pgetevents io_setup io_submit poll ppoll pselect6 select`

const memory = `
  brk cachestat madvise map_shadow_stack membarrier mincore mlock mlock2 mlockall mmap mprotect mremap mseal msync munlock
  munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages`

const processes = `
  capget capset execve execveat exit exit_group fork getcpu getegid geteuid getgid getgroups getpgid getpgrp getpid getppid
  getpriority getresgid getresuid getrlimit getrusage getsid gettid getuid ioprio_get ioprio_set kill pidfd_open
  pidfd_send_signal prctl prlimit64 process_mrelease sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
  sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler
  sched_yield setfsgid setfsuid setgid setgroups setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setuid
  sysinfo tgkill times tkill uname vfork wait4 waitid`

const threads = `
  arch_prctl futex futex_requeue futex_wait futex_waitv futex_wake get_robust_list get_thread_area rseq set_robust_list
  set_thread_area set_tid_address`

const signals = `
  pause restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
  rt_tgsigqueueinfo sigaltstack signalfd signalfd4`

/** Reading clocks and timers; setting the clock also takes CAP_SYS_TIME (adjtimex(2) reads without it). */
const clocks = `
  adjtimex alarm clock_adjtime clock_getres clock_gettime clock_nanosleep getitimer gettimeofday nanosleep setitimer time
  timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime`

const network = `
  accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg sendmsg sendto
  setsockopt shutdown socketpair`

const sharing = `
  mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop
  semtimedop shmat shmctl shmdt shmget`

/** A program may restrict itself further, and needs random numbers. */
const ownSecurity = `
  getrandom landlock_add_rule landlock_create_ruleset landlock_restrict_self lsm_get_self_attr lsm_list_modules lsm_set_self_attr
  memfd_secret seccomp`

const always = words([files, waiting, memory, processes, threads, signals, clocks, network, sharing, ownSecurity].join(' '))

/** A capability is useless without its calls. */
const byCapability: Readonly<Record<string, string>> = {
  CAP_BPF: 'bpf',
  CAP_DAC_READ_SEARCH: 'open_by_handle_at',
  CAP_PERFMON: 'perf_event_open',
  CAP_SYS_ADMIN: `bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree
    perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog umount2 unshare`,
  CAP_SYS_BOOT: 'reboot',
  CAP_SYS_CHROOT: 'chroot',
  CAP_SYS_MODULE: 'delete_module finit_module init_module',
  CAP_SYS_NICE: 'get_mempolicy mbind set_mempolicy set_mempolicy_home_node',
  CAP_SYS_PACCT: 'acct',
  CAP_SYS_PTRACE: 'kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace',
  CAP_SYS_RAWIO: 'ioperm iopl',
  CAP_SYS_TIME: 'clock_settime settimeofday',
  CAP_SYS_TTY_CONFIG: 'vhangup',
  CAP_SYSLOG: 'syslog',
}

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET of clone(2). */
const newNamespaces = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
const { ENOSYS } = constants.errno
/** From the address families of socket(2). */
const AF_ALG = 38
/** personality(2): the default, with 32-bit addresses, as an older kernel, both, and the query. */
const personalities = [0x0, 0x0008, 0x20000, 0x20008, 0xffffffff]

const architectures: Readonly<Record<string, string>> = { x64: 'SCMP_ARCH_X86_64', arm64: 'SCMP_ARCH_AARCH64' }

/** The profile of a service with these capabilities (`CAP_…`). */
export function seccompProfile(capabilities: readonly string[], arch: string = process.arch): SeccompProfile {
  const allow = (names: readonly string[], args?: Rule['args']): Rule => ({ names, action: 'SCMP_ACT_ALLOW', ...(args && { args }) })
  const added = capabilities.flatMap((name) => words(byCapability[name] ?? ''))
  const architecture = architectures[arch]
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    architectures: architecture ? [architecture] : [],
    syscalls: [
      allow([...new Set([...always, ...added])]),
      // AF_ALG, AF_VSOCK and newer families reach kernel code that no service uses. The kernel takes the low half of the family, a
      // filter sees all of it: a value "greater than AF_VSOCK" could be AF_ALG to the kernel.
      allow(['socket'], [{ index: 0, value: AF_ALG, op: 'SCMP_CMP_LT' }]),
      ...personalities.map((value) => allow(['personality'], [{ index: 0, value, op: 'SCMP_CMP_EQ' }])),
      ...(added.includes('clone')
        ? []
        : [
            allow(['clone'], [{ index: 0, value: newNamespaces, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }]),
            // The flags of clone3 are in memory, which a filter cannot read; C libraries then fall back to clone.
            { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS } as const,
          ]),
    ],
  }
}
