import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { configProbes, connectTcp, mergeProbes, runProbes } from '../../../src/os/network/controllers/probe.ts'
import { ProbeStatus } from '../../../src/os/network/resources/probe.ts'

test('an endpoint fails after its failure threshold, and recovers at once', async () => {
  const answers = [true, false, false, false, true]
  const seen: boolean[] = []
  const done = Promise.withResolvers<void>()
  const store = new Store()
  const os = new Runtime(store, { log: silent })
  const connect = async (_endpoint: string, _timeout: number, signal: AbortSignal) => {
    const answer = answers.shift()
    if (answer === undefined) return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    if (!answer) throw new Error('refused')
  }
  store.subscribe(
    ProbeStatus,
    (event) => {
      if (!('resource' in event) || !event.resource) return
      seen.push((event.resource.spec as { success: boolean }).success)
      if (seen.length === 3) done.resolve()
    },
    {},
  )
  os.register(configProbes, mergeProbes, runProbes(connect))
  os.start()
  store.put(
    MachineConfig,
    'v1alpha1',
    `version: v1alpha1
machine:
  type: worker
cluster: {}
---
apiVersion: v1alpha1
kind: TCPProbeConfig
name: api
endpoint: 10.0.0.1:6443
interval: 10ms
failureThreshold: 1
`,
  )
  await done.promise
  expect(seen).toEqual([true, false, true])
  expect(store.list(ProbeStatus).map(({ metadata }) => metadata.id)).toEqual(['tcp:10.0.0.1:6443'])
  os.stop()
})

test('a connection succeeds or fails with the reason', async () => {
  const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { signal } = new AbortController()
  await connectTcp(`127.0.0.1:${server.port}`, 5000, signal)
  const { port } = server
  server.stop(true)
  await expect(connectTcp(`127.0.0.1:${port}`, 5000, signal)).rejects.toThrow(`connect to "127.0.0.1:${port}"`)
  await expect(connectTcp('nowhere', 5000, signal)).rejects.toThrow('is not an endpoint')
})
