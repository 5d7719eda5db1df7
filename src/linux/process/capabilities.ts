import { check, libc } from '../libc.ts'

const c = libc({
  capset: { args: ['ptr', 'ptr'], returns: 'i32' },
  capget: { args: ['ptr', 'ptr'], returns: 'i32' },
  prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' },
})

/** Capabilities in the order of their numbers (linux/capability.h). */
export const capabilityNames = [
  'chown',
  'dac_override',
  'dac_read_search',
  'fowner',
  'fsetid',
  'kill',
  'setgid',
  'setuid',
  'setpcap',
  'linux_immutable',
  'net_bind_service',
  'net_broadcast',
  'net_admin',
  'net_raw',
  'ipc_lock',
  'ipc_owner',
  'sys_module',
  'sys_rawio',
  'sys_chroot',
  'sys_ptrace',
  'sys_pacct',
  'sys_admin',
  'sys_boot',
  'sys_nice',
  'sys_resource',
  'sys_time',
  'sys_tty_config',
  'mknod',
  'lease',
  'audit_write',
  'audit_control',
  'setfcap',
  'mac_override',
  'mac_admin',
  'syslog',
  'wake_alarm',
  'block_suspend',
  'audit_read',
  'perfmon',
  'bpf',
  'checkpoint_restore',
] as const

/** A capability without its CAP_ prefix, lower case. */
export type Capability = (typeof capabilityNames)[number]

/** The three sets of a thread. */
export interface CapabilitySets {
  effective: Capability[]
  permitted: Capability[]
  inheritable: Capability[]
}

const version3 = 0x20080522 // _LINUX_CAPABILITY_VERSION_3

const header = () => new Uint32Array([version3, 0])
const bitsOf = (set: readonly Capability[]) => set.reduce((bits, name) => bits | (1n << BigInt(capabilityNames.indexOf(name))), 0n)
const namesOf = (bits: bigint) => capabilityNames.filter((_, index) => (bits >> BigInt(index)) & 1n)

/** Parses `CAP_NET_ADMIN`, `net_admin` and similar spellings; undefined for an unknown name. */
export function capability(name: string): Capability | undefined {
  const short = name.toLowerCase().replace(/^cap_/, '')
  return capabilityNames.find((known) => known === short)
}

/** capget(2) of this thread. */
export function capabilities(): CapabilitySets {
  const data = new Uint32Array(6)
  check('capget', c().capget(header(), data))
  const join = (index: number) => BigInt(data[index] ?? 0) | (BigInt(data[index + 3] ?? 0) << 32n)
  return { effective: namesOf(join(0)), permitted: namesOf(join(1)), inheritable: namesOf(join(2)) }
}

/** capset(2) of this thread. */
export function setCapabilities({ effective, permitted, inheritable }: CapabilitySets): void {
  const data = new Uint32Array(6)
  for (const [index, set] of [effective, permitted, inheritable].entries()) {
    const bits = bitsOf(set)
    data[index] = Number(bits & 0xffffffffn)
    data[index + 3] = Number(bits >> 32n)
  }
  check('capset', c().capset(header(), data))
}

/** The capabilities a future execve may still grant (prctl PR_CAPBSET_READ). */
export function boundingSet(): Capability[] {
  return capabilityNames.filter((_, index) => c().prctl(23, index, 0, 0, 0) === 1)
}

/** Removes capabilities from the bounding set permanently (prctl PR_CAPBSET_DROP); absent ones are skipped. */
export function dropFromBoundingSet(drop: readonly Capability[]): void {
  for (const name of drop) {
    const number = capabilityNames.indexOf(name)
    if (c().prctl(23, number, 0, 0, 0) === 1) check('prctl', c().prctl(24, number, 0, 0, 0), `PR_CAPBSET_DROP ${name}`)
  }
}

/** Raises capabilities that survive the execve of an ordinary file (prctl PR_CAP_AMBIENT_RAISE). */
export function raiseAmbient(raise: readonly Capability[]): void {
  for (const name of raise) check('prctl', c().prctl(47, 2, capabilityNames.indexOf(name), 0, 0), `PR_CAP_AMBIENT_RAISE ${name}`)
}

/** Keeps the permitted set over a change of uid from 0 (prctl PR_SET_KEEPCAPS). */
export function keepCapabilities(keep: boolean): void {
  check('prctl', c().prctl(8, keep ? 1 : 0, 0, 0, 0), 'PR_SET_KEEPCAPS')
}
