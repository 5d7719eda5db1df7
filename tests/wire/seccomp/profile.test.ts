import { expect, test } from 'bun:test'
import { ociSpec } from '../../../src/supervise/containerd/spec.ts'
import { type SeccompProfile, seccompProfile } from '../../../src/wire/seccomp/profile.ts'

const profileOf = (more: object) =>
  (ociSpec({ args: ['/usr/bin/apid'], cgroupVersion: 2, ...more }) as { linux: { seccomp?: SeccompProfile } }).linux.seccomp
const allowed = ({ syscalls }: SeccompProfile) =>
  new Set(syscalls.filter(({ action, args }) => action === 'SCMP_ACT_ALLOW' && !args).flatMap(({ names }) => names))

test('an unprivileged container has an allow list of system calls, a privileged one has no profile', () => {
  expect(profileOf({})).toMatchObject({ defaultAction: 'SCMP_ACT_ERRNO' })
  expect(profileOf({})?.architectures).toHaveLength(1)
  expect(profileOf({ privileged: true })).toBeUndefined()
})

test.each(
  `acct add_key bpf chroot clone clone3 delete_module fanotify_init finit_module fsmount fsopen init_module io_uring_setup ioperm
  iopl kcmp kexec_file_load kexec_load keyctl mount mount_setattr move_mount nfsservctl open_by_handle_at open_tree perf_event_open
  personality pidfd_getfd pivot_root process_madvise process_vm_readv process_vm_writev ptrace quotactl reboot request_key
  sethostname setns settimeofday swapoff swapon syslog umount2 unshare userfaultfd vhangup`.split(/\s+/),
)('%s is not to be had unconditionally', (name) => {
  expect(allowed(seccompProfile([]))).not.toContain(name)
})

test('a capability adds the calls it needs', () => {
  expect(allowed(seccompProfile(['CAP_NET_ADMIN']))).toEqual(allowed(seccompProfile([])))
  expect(allowed(seccompProfile(['CAP_SYS_TIME']))).toContain('clock_settime')
  expect(allowed(seccompProfile(['CAP_SYS_PTRACE']))).toContain('process_vm_readv')
  const admin = seccompProfile(['CAP_SYS_ADMIN'])
  expect(allowed(admin)).toContain('mount')
  expect(admin.syscalls.filter(({ names }) => names.includes('clone3'))).toEqual([expect.objectContaining({ action: 'SCMP_ACT_ALLOW' })])
})

test('threads may be created, namespaces may not', () => {
  const { syscalls } = seccompProfile([])
  expect(syscalls.find(({ names }) => names.includes('clone'))?.args).toEqual([
    { index: 0, value: 0x7e020000, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' },
  ])
  expect(syscalls.find(({ names }) => names.includes('clone3'))).toMatchObject({ action: 'SCMP_ACT_ERRNO', errnoRet: 38 })
})

test('each machine allows its own architecture only', () => {
  expect(seccompProfile([], 'x64').architectures).toEqual(['SCMP_ARCH_X86_64'])
  expect(seccompProfile([], 'arm64').architectures).toEqual(['SCMP_ARCH_AARCH64'])
})
