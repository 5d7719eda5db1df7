import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import { merge, strongest } from '../../../cosi/merge.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { pause } from '../../../timing/pause.ts'
import { within } from '../../../timing/within.ts'
import { milliseconds } from '../../../wire/duration.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { parseHostPort } from '../../../wire/host-port.ts'
import { declared, findAll } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { TCPProbeConfig } from '../documents/tcp-probe.ts'
import { ProbeSpec, ProbeStatus } from '../resources/probe.ts'

/** Declares the configured probes. */
export const configProbes: Controller = defineController({
  name: 'network.ProbeConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { spec: shared(ProbeSpec, 'network-config') },
  reconcile({ config, spec }) {
    for (const document of findAll(declared(config.get('v1alpha1')), TCPProbeConfig)) {
      const { interval = '1s', failureThreshold = 0 } = document
      const { endpoint = '', timeout = '10s' } = document
      spec.put(`configuration/tcp:${endpoint}`, { interval, failureThreshold, tcp: { endpoint, timeout }, layer: 'configuration' })
    }
  },
})

/** Merges the layers into one spec per probe. */
export const mergeProbes: Controller = merge('ProbeMergeControllers.net.talos.dev', ProbeSpec, strongest)

/** Connects to `host:port`. Rejects with the reason, or after `timeout` milliseconds. */
export type Connect = (endpoint: string, timeout: number, signal: AbortSignal) => Promise<void>

/** Runs probes periodically. A probe fails after more than `failureThreshold` failures in a row. */
export const runProbes = (connect: Connect): Controller => {
  const found = new Map<string, SpecOf<typeof ProbeStatus>>()
  return defineController({
    name: 'network.ProbeController',
    inputs: { specs: weak(ProbeSpec) },
    outputs: { status: exclusive(ProbeStatus) },
    reconcile({ specs, status, background }) {
      const desired = specs.list()
      for (const id of found.keys()) if (!desired.some(({ metadata }) => metadata.id === id)) found.delete(id)
      for (const { metadata, spec } of desired) {
        background({ name: metadata.id, of: JSON.stringify(spec) }, async (signal, wake) => {
          let failures = 0
          const report = (success: boolean, lastError: string) => {
            const before = found.get(metadata.id)
            if (before?.success === success && before.lastError === lastError) return
            found.set(metadata.id, { success, lastError })
            wake()
          }
          while (!signal.aborted) {
            try {
              await connect(spec.tcp?.endpoint ?? '', Math.max(1, milliseconds(spec.tcp?.timeout)), signal)
              failures = 0
              report(true, '')
            } catch (error) {
              if (signal.aborted) return
              if (++failures > spec.failureThreshold) report(false, messageOf(error))
            }
            await pause(Math.max(10, milliseconds(spec.interval)), signal)
          }
        })
        const outcome = found.get(metadata.id)
        if (outcome) status.put(metadata.id, outcome)
      }
    },
  })
}

/** Opens a TCP connection and closes it. */
export const connectTcp: Connect = (endpoint, timeout, signal) => {
  const target = parseHostPort(endpoint)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  if (!target) return Promise.reject(new Error(`"${endpoint}" is not an endpoint, like "example.com:443"`))
  const refused = (reason: unknown) => reject(new Error(`connect to "${endpoint}": ${messageOf(reason)}`))
  signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  Bun.connect({
    hostname: target.host,
    port: target.port,
    socket: {
      open(socket) {
        resolve()
        socket.end()
      },
      data() {},
      error: (_, error) => refused(error),
      connectError: (_, error) => refused(error),
    },
  }).catch(refused)
  return within(promise, timeout, () => new Error(`connect to "${endpoint}": no answer within ${timeout} ms`))
}
