/**
 * A power cut or a bad disk leaves files empty, cut short or full of garbage. Whatever init reads of what earlier starts wrote
 * is then logged and counts as absent: the node comes up as it would without it.
 */

import { beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Glob } from 'bun'
import { pause } from '../../../src/timing/pause.ts'
import { becomes, never, settledShape, startNode, unexpected, useSandbox } from './sandbox-node.ts'

useSandbox()

/** Files that only some nodes have, or only machines with disks of their own. */
const others = [
  'system/state/config-history.json',
  'system/state/config-trial.json',
  'system/state/config.yaml.previous',
  'system/state/kubespan-identity.yaml',
  'system/state/last-time',
  'system/state/platform-network.yaml',
  'system/state/component-settings.json',
  'var/lib/kubelet/pki/kubelet-client-current.pem',
  'var/lib/kubelet/pki/kubelet.crt',
  'etc/kubernetes/kubeconfig-kubelet',
  'etc/kubernetes/bootstrap-kubeconfig',
]

let shape: string[]
let written: Map<string, Buffer>
beforeAll(async () => {
  const here = await startNode()
  shape = await settledShape(here)
  written = new Map()
  // Not through links: what /var/run leads to is not kept.
  for (const folder of ['system/state', 'var', 'etc/kubernetes', 'system/etc'].filter((each) => existsSync(join(here.root, each))))
    for (const name of new Glob(`${folder}/**`).scanSync({ cwd: here.root, dot: true }))
      written.set(name, readFileSync(join(here.root, name)))
  written.delete('system/state/config.yaml')
  for (const path of others) if (!written.has(path)) written.set(path, Buffer.from('{"version": 1, "kind": "Config"}\nkey: value\n'))
  await here.stop()
})

const damages: Record<string, (content: Buffer) => Buffer> = {
  empty: () => Buffer.alloc(0),
  'cut short': (content) => content.subarray(0, Math.ceil(content.length / 2)),
  'full of zeros': (content) => Buffer.alloc(content.length),
  'full of garbage': (content) => Buffer.from(content.map((_, index) => (index * 167 + 131) & 0xff)),
  'well-formed and of another kind': () => Buffer.from('[1, {"a": null}]'),
  'YAML that cannot be read': () => Buffer.from('a: [b\n\t- : : {'),
}

const put = (root: string, path: string, content: Buffer) => {
  mkdirSync(join(root, dirname(path)), { recursive: true })
  writeFileSync(join(root, path), content)
}

describe('a node whose files are', () => {
  test.each(Object.keys(damages))('%s comes up', async (name) => {
    const here = await startNode(undefined, (root) => {
      for (const [path, content] of written) put(root, path, damages[name]!(content))
    })
    await becomes(here, shape)
    await pause(0, never)
    expect(unexpected.splice(0)).toEqual([])
    expect(here.ends).toEqual([])
    await here.stop()
  })
})

describe('a node whose configuration is', () => {
  // Half of a configuration may be one.
  test.each(Object.keys(damages).filter((name) => name !== 'cut short'))('%s waits in maintenance and reports it', async (name) => {
    const here = await startNode(undefined, (root) => {
      const path = join(root, 'system/state/config.yaml')
      writeFileSync(path, damages[name]!(readFileSync(path)))
    })
    while (!here.machine.store.all().some(({ metadata }) => metadata.type.startsWith('MaintenanceServiceRequests'))) await pause(10, never)
    expect(unexpected.splice(0)).toEqual([])
    expect(here.ends).toEqual([])
    if (name !== 'empty') expect(here.entries.filter(({ level }) => level === 'error' || level === 'warn').length).toBeGreaterThan(0)
    await here.stop()
  })
})
