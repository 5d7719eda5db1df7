import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { KubeAccess } from '../../../kube/transport.ts'
import { declared, podSubnets, serviceSubnets } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { Nodename } from '../../k8s/resources/nodename.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { Diagnostic } from '../../runtime/resources/diagnostic.ts'
import { Service } from '../../runtime/resources/service.ts'
import { addressOverlap, type Diagnosis, kubeletRequest } from '../checks.ts'

/** Milliseconds that something must be wrong before it is published. */
const settleTime = 30_000
const checkInterval = 60_000
const checkLimit = 60_000

/** What the checks use of the machine. */
interface Dependencies {
  /** The node's access to Kubernetes, if it has one. */
  access(): KubeAccess | undefined
  /** Replaced in tests. */
  request?: typeof kubeletRequest
}

/** Publishes what is wrong with the node as soon as it has been so for 30 seconds. A check that fails finds nothing. */
export const publishDiagnostics = ({ access, request = kubeletRequest }: Dependencies): Controller => {
  /** When each was found first, by the monotonic clock. */
  const since = new Map<string, number>()
  return defineController({
    name: 'runtime.DiagnosticsController',
    inputs: {
      addresses: weak(NodeAddress, { id: 'routed' }),
      config: weak(MachineConfig, { id: 'v1alpha1' }),
      services: weak(Service, { id: 'kubelet' }),
      nodenames: weak(Nodename),
    },
    outputs: { diagnostics: shared(Diagnostic) },
    async reconcile({ addresses, config, services, nodenames, diagnostics, clock, signal, log, wakeIn }) {
      const cluster = declared(config.get('v1alpha1'))?.cluster
      const kubelet = services.get('kubelet')?.spec
      const nodename = nodenames.get('nodename')?.spec.nodename
      const checks: Record<string, () => Promise<Diagnosis | undefined> | Diagnosis | undefined> = {
        'address-overlap': () =>
          cluster &&
          addressOverlap({
            addresses: addresses.get('routed')?.spec.addresses ?? [],
            pods: podSubnets(cluster),
            services: serviceSubnets(cluster),
          }),
        'kubelet-csr': () => {
          const present = access()
          if (!kubelet?.running || !kubelet.healthy || nodename === undefined || !present) return undefined
          return request(nodename, present, AbortSignal.any([signal, AbortSignal.timeout(checkLimit)]))
        },
      }
      let next = checkInterval
      for (const [id, check] of Object.entries(checks)) {
        const found = await Promise.resolve()
          .then(check)
          .catch((error: unknown) => log.debug('diagnostic check failed', { id, error }))
        if (!found) {
          since.delete(id)
          continue
        }
        const first = since.get(id) ?? clock.elapsed()
        since.set(id, first)
        const left = first + settleTime - clock.elapsed()
        if (left <= 0) diagnostics.put(id, found)
        else next = Math.min(next, left)
      }
      wakeIn(next)
    },
  })
}
