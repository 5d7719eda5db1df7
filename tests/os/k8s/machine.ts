import type { Clock } from '../../../src/cosi/clock.ts'
import type { Controller } from '../../../src/cosi/controller.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { MachineType } from '../../../src/os/config/resources/machine-type.ts'

type Owner = { mode?: number; uid?: number | undefined }

/** Files in memory, as far as Kubernetes and etcd need any. */
export function memoryFiles() {
  const contents = new Map<string, string>()
  const owners = new Map<string, Owner>()
  return {
    contents,
    owners,
    exists: (path: string) => [...contents.keys()].some((file) => file === path || file.startsWith(`${path}/`)),
    list: (path: string) => [...contents.keys()].filter((file) => file.startsWith(`${path}/`)),
    mkdirAll(path: string, owner: Owner = {}) {
      owners.set(path, owner)
    },
    readTextIfThere: (path: string) => contents.get(path),
    async writeAtomic(path: string, data: string | Uint8Array, owner: Owner = {}) {
      contents.set(path, typeof data === 'string' ? data : Buffer.from(data).toString())
      owners.set(path, owner)
    },
    removeFile: (path: string) => void contents.delete(path),
    async remove(path: string) {
      for (const file of contents.keys()) if (file === path || file.startsWith(`${path}/`)) contents.delete(file)
    },
    move(from: string, to: string) {
      const moved = [...contents.keys()].filter((file) => file === from || file.startsWith(`${from}/`))
      if (moved.length === 0) throw new Error(`rename "${from}": ENOENT`)
      for (const file of moved) {
        contents.set(to + file.slice(from.length), contents.get(file) ?? '')
        contents.delete(file)
      }
    },
    lstatIfThere: (path: string) => (contents.has(path) ? ({} as never) : undefined),
    symlink: (target: string, path: string) => void contents.set(path, contents.get(target) ?? ''),
  }
}

/** A control plane's configuration, with more under `machine:` and `cluster:`. */
export const controlPlane = (machine = '', cluster = ''): string => configuration('controlplane', machine, cluster)

/** A worker's configuration. */
export const worker = (machine = '', cluster = ''): string => configuration('worker', machine, cluster)

function configuration(type: string, machine: string, cluster: string): string {
  const indented = (text: string) => text.replace(/^(?=.)/gm, '  ')
  return `version: v1alpha1
machine:
  type: ${type}
${indented(machine)}
cluster:
  clusterName: c1
  controlPlane:
    endpoint: https://10.5.0.1:6443
${indented(cluster)}
`
}

/** A real store and runtime with some controllers and a configuration. */
export function machineWith(controllers: readonly Controller[], config?: string, clock?: Clock) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent, ...(clock && { clock }) })
  runtime.register(...controllers)
  if (config) {
    store.put(MachineConfig, 'v1alpha1', config)
    store.put(MachineType, 'machine-type', config.includes('type: worker') ? 'worker' : 'controlplane')
  }
  runtime.start()
  return { store, runtime, settled: () => runtime.settled() }
}
