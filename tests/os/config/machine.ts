import { makeClock } from '../../../src/cosi/clock.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { SystemError } from '../../../src/linux/system-error.ts'
import type { Machine } from '../../../src/os/area.ts'
import { generate } from '../../../src/os/config/generate/generate.ts'
import { newCA } from '../../../src/pki/certificate.ts'

const made = newCA({ subject: { commonName: 'x' }, kind: 'ecdsa' })
const base64 = (pem: string) => Buffer.from(pem).toString('base64')
const pair = { crt: base64(made.crt), key: base64(made.key) }

/** Secrets of one authority for all, which is enough to be valid. */
export const secrets = {
  cluster: { id: 'a', secret: Buffer.alloc(32, 'b').toString('base64') },
  secrets: { bootstraptoken: 'cccccc.cccccccccccccccc' },
  trustdinfo: { token: 'dddddd.dddddddddddddddd' },
  certs: { etcd: pair, k8s: pair, k8saggregator: pair, k8sserviceaccount: { key: pair.key }, os: pair },
}

const generated = (type: 'controlplane' | 'worker') => generate(type, { clusterName: 'x', endpoint: 'https://10.0.0.1:6443', secrets })

/** A generated configuration of each type. */
export const whole = { controlplane: generated('controlplane'), worker: generated('worker') } as const

/** A generated configuration, with a patch. */
export const config = (type: 'controlplane' | 'worker', patch = ''): string => whole[type].patch(patch).toString()

/** A machine whose disk is a map and whose clock stands where it is put. */
export function machineInMemory(kept: Record<string, string> = {}, clock = { now: new Date('2026-11-21T12:00:00Z') }) {
  const store = new Store()
  const disk = new Map(Object.entries(kept))
  const published: string[] = []
  const files = {
    full: false,
    readTextIfThere: (path: string) => disk.get(path),
    writeAtomic: async (path: string, text: string) => {
      if (files.full) throw new SystemError('write', 'ENOSPC', JSON.stringify(path))
      disk.set(path, text)
    },
    remove: async (path: string) => void disk.delete(path),
  }
  const runtime = new Runtime(store, { log: silent, clock: makeClock({ now: () => clock.now }) })
  const machine = {
    store,
    runtime,
    log: silent,
    kernel: { mode: 'container', files },
    events: { publish: (type: string, { error }: Record<string, unknown>) => published.push(`${type}: ${String(error).split('\n')[0]}`) },
  } as unknown as Machine
  return { machine, store, disk, published, files, runtime, clock }
}
