import { isObject } from '../../document/is-object.ts'
import { basicMounts, maskedPaths, ociVersion, readonlyPaths } from '../../supervise/containerd/spec.ts'

/** The default rights of a pod's container. */
const capabilities = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FSETID',
  'FOWNER',
  'MKNOD',
  'NET_RAW',
  'SETGID',
  'SETUID',
  'SETFCAP',
  'SETPCAP',
  'NET_BIND_SERVICE',
  'SYS_CHROOT',
  'KILL',
  'AUDIT_WRITE',
].map((name) => `CAP_${name}`)

/**
 * The specification that each container of a pod starts with: containerd's default without resource limits, so that a container
 * inherits those of containerd, merged with the overrides.
 */
export function baseRuntimeSpec(overrides: Readonly<Record<string, unknown>>): object {
  const base = {
    ociVersion,
    process: {
      user: { uid: 0, gid: 0 },
      cwd: '/',
      noNewPrivileges: true,
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
    },
    root: { path: 'rootfs' },
    mounts: basicMounts,
    linux: {
      maskedPaths,
      readonlyPaths,
      resources: { devices: [{ allow: false, access: 'rwm' }] },
      namespaces: ['pid', 'ipc', 'uts', 'mount', 'network'].map((type) => ({ type })),
    },
  }
  return overlay(base, overrides) as object
}

/** Objects are merged; lists and plain values are replaced. */
function overlay(under: unknown, over: unknown): unknown {
  if (!isObject(under) || !isObject(over)) return over
  return { ...under, ...Object.fromEntries(Object.entries(over).map(([key, value]) => [key, overlay(under[key], value)])) }
}
