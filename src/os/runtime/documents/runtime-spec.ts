/** `machine.baseRuntimeSpecOverrides` must be part of an OCI runtime specification: the types of its fields are checked. */
import type { Reporter } from '../../../document/kind.ts'

type Type = 'a text' | 'a number' | 'true or false' | 'a list' | 'a map'
type Shape = { readonly [key: string]: Type | Shape }

const shape: Shape = {
  ociVersion: 'a text',
  hostname: 'a text',
  domainname: 'a text',
  mounts: 'a list',
  hooks: 'a map',
  annotations: 'a map',
  root: { path: 'a text', readonly: 'true or false' },
  process: {
    terminal: 'true or false',
    consoleSize: 'a map',
    user: { uid: 'a number', gid: 'a number', umask: 'a number', additionalGids: 'a list', username: 'a text' },
    args: 'a list',
    commandLine: 'a text',
    env: 'a list',
    cwd: 'a text',
    capabilities: { bounding: 'a list', effective: 'a list', inheritable: 'a list', permitted: 'a list', ambient: 'a list' },
    rlimits: 'a list',
    noNewPrivileges: 'true or false',
    apparmorProfile: 'a text',
    oomScoreAdj: 'a number',
    scheduler: 'a map',
    selinuxLabel: 'a text',
    ioPriority: 'a map',
    execCPUAffinity: 'a map',
  },
  linux: {
    uidMappings: 'a list',
    gidMappings: 'a list',
    sysctl: 'a map',
    resources: 'a map',
    cgroupsPath: 'a text',
    namespaces: 'a list',
    devices: 'a list',
    netDevices: 'a map',
    seccomp: 'a map',
    rootfsPropagation: 'a text',
    maskedPaths: 'a list',
    readonlyPaths: 'a list',
    mountLabel: 'a text',
    intelRdt: 'a map',
    personality: 'a map',
    timeOffsets: 'a map',
  },
}

/** Reports values with which no container could be started. */
export function runtimeSpecRules(overrides: Readonly<Record<string, unknown>>, report: Reporter): void {
  check(overrides, shape, ['machine', 'baseRuntimeSpecOverrides'], report)
}

function check(value: Readonly<Record<string, unknown>>, shape: Shape, path: readonly string[], report: Reporter): void {
  for (const [key, item] of Object.entries(value)) {
    const wanted = shape[key]
    if (wanted === undefined || item === null) continue
    const at = [...path, key]
    const found = typeOf(item)
    if (typeof wanted === 'string') {
      if (found !== wanted) report.error(at, `a runtime specification has ${wanted} there, not ${found}`)
    } else if (found === 'a map') check(item as Record<string, unknown>, wanted, at, report)
    else report.error(at, `a runtime specification has a map there, not ${found}`)
  }
}

function typeOf(value: unknown): Type {
  if (Array.isArray(value)) return 'a list'
  return ({ string: 'a text', number: 'a number', boolean: 'true or false' } as const)[typeof value as 'string'] ?? 'a map'
}
