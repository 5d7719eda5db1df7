import { afterEach, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { createLogger } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { mountId, VolumeMountStatus } from '../../../src/os/block/resources/volume-mount.ts'
import { runKubePrism } from '../../../src/os/k8s/controllers/kube-prism/kube-prism.ts'
import { KubePrismConfig, KubePrismStatus } from '../../../src/os/k8s/resources/kube-prism.ts'
import type { Mode } from '../../../src/os/kernel.ts'
import { freePort } from '../../support/free-port.ts'

const runtimes: Runtime[] = []
afterEach(() => {
  for (const runtime of runtimes.splice(0)) runtime.stop()
})

const mount = {
  ...{ volumeID: 'EPHEMERAL', requester: 'machined', target: '/var' },
  ...{ readOnly: false, detached: false, disableAccessTime: false, secure: true },
}

/** A node whose API server does not answer; its disk has these pods. */
async function node(mode: Mode, pods: string[]) {
  const store = new Store()
  const runtime = new Runtime(store, { log: createLogger(() => {}) })
  runtimes.push(runtime)
  let isMounted = mode !== 'metal'
  const files = { exists: () => isMounted, list: () => (isMounted ? pods : []) }
  runtime.register(runKubePrism({ files, mode }))
  const [port, server] = [await freePort(), await freePort()]
  store.put(KubePrismConfig, 'k8s-loadbalancer-config', { host: '127.0.0.1', port, endpoints: [{ host: 'localhost', port: server }] })
  runtime.start()
  return {
    /** Resolves when a client is accepted, or refused, as awaited. */
    async until(wanted: 'held' | 'refused') {
      while ((await tryConnection(port)) !== wanted) await runtime.settled()
    },
    mountDisk() {
      isMounted = true
      store.put(VolumeMountStatus, mountId('EPHEMERAL'), mount)
    },
    status: () => store.get(KubePrismStatus, 'k8s-loadbalancer')?.spec.healthy,
  }
}

const tryConnection = (port: number) =>
  new Promise<'held' | 'refused'>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve('held')
    })
    socket.once('error', () => resolve('refused'))
  })

test('clients of a machine that recovers pods are refused once its disk shows them', async () => {
  const at = await node('metal', ['pod-a'])
  await at.until('held')
  at.mountDisk()
  await at.until('refused')
  expect(at.status()).toBe(false)
})

test('clients of a first start are held, also after its disk is mounted', async () => {
  const pods: string[] = []
  const at = await node('metal', pods)
  await at.until('held')
  at.mountDisk()
  await at.until('held')
  // The API server itself is one of the pods that appear now.
  pods.push('pod-a')
  await at.until('held')
})

test('the disk of a container node is there from the start', async () => {
  const at = await node('container', ['pod-a'])
  await at.until('refused')
})
