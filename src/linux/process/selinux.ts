/** SELinux with the policy of this system: what processes and files are to it (rootfs/selinux). */
import { readdirSync } from 'node:fs'
import { exists, readTextIfThere, writeInto } from '../fs/files.ts'
import { getXattr, setXattr } from '../fs/xattr.ts'

const ours = 'system_u:system_r:init_t:'
const attribute = 'security.selinux'

/**
 * Whether this process runs as init under the policy of this system. The file is there only while the kernel uses SELinux; on a host
 * with another policy a node has another label.
 */
const applies = (): boolean => exists('/sys/fs/selinux/enforce') && (readTextIfThere('/proc/self/attr/current') ?? '').startsWith(ours)

/** The label of processes of a domain; undefined where the policy does not apply. */
export const processLabel = (domain: string): string | undefined => (applies() ? `system_u:system_r:${domain}:s0` : undefined)

/** The next program that this thread executes runs in the domain, where the policy applies. */
export function becomeAtExec(domain: string): void {
  const label = processLabel(domain)
  if (label) writeInto('/proc/thread-self/attr/exec', label)
}

/** Gives a file or folder a label, where the policy applies; what is made in a folder later has its type. */
export function labelFile(path: string, label: string): void {
  if (applies()) setLabel(path, label)
}

/** Gives a folder a label, and all that lies in it: what was made while the kernel did not use SELinux has none. */
export function labelTree(path: string, label: string): void {
  if (!applies()) return
  for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' })) setLabel(`${path}/${name}`, label)
  setLabel(path, label)
}

function setLabel(path: string, label: string): void {
  const value = `${label}\0`
  if (Buffer.from(getXattr(path, attribute) ?? []).toString() !== value) setXattr(path, attribute, Buffer.from(value))
}
