/** The service by which pods reach the machine API, and the addresses behind it. */
import type { Clock } from '../../../cosi/clock.ts'
import { core, type KubeClient } from '../../../kube/client.ts'
import { isNotFound, KubeError } from '../../../kube/errors.ts'
import { fieldManager } from '../../../kube/inventory.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { isIPv6 } from '../../../wire/prefix.ts'
import { machineApiService } from '../../secrets/public.ts'

const { name, namespace, port } = machineApiService
const labels = { provider: 'talos.dev', component: 'apid' }

/** Milliseconds between two checks, and until a failed one is repeated. */
const interval = 60_000
const retryInterval = 2_000

/** The service; it selects no pods, since apid is none. */
export const apiService = (): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace, labels },
  spec: { ports: [{ name: 'apid', port, protocol: 'TCP', targetPort: port }] },
})

/** The slices of each address family; `endpoints` is empty for a family without addresses. */
export function apiSlices(addresses: readonly string[]): KubeObject[] {
  return (['IPv4', 'IPv6'] as const).map((addressType) => ({
    apiVersion: core.endpointSlice.apiVersion,
    kind: core.endpointSlice.kind,
    metadata: { name: `${name}-${addressType.toLowerCase()}`, namespace, labels: { 'kubernetes.io/service-name': name, ...labels } },
    addressType,
    endpoints: addresses
      .filter((address) => isIPv6(address) === (addressType === 'IPv6'))
      .map((address) => ({ addresses: [address], conditions: { ready: true, serving: true, terminating: false } })),
    ports: [{ name: 'apid', port, protocol: 'TCP' }],
  }))
}

/** Keeps the service and its slices as they have to be, until the signal. */
export async function keepEndpoints(
  client: KubeClient,
  addresses: readonly string[],
  { clock, report }: { clock: Clock; report(error?: unknown): void },
  signal: AbortSignal,
): Promise<void> {
  // Earlier releases of the field kept an Endpoints object, which Kubernetes would mirror into a slice of its own.
  let mirrored = true
  while (!signal.aborted) {
    let delay = interval
    try {
      if (mirrored) await client.delete(core.endpoints, name, namespace, { signal }).catch(ifThere)
      mirrored = false
      await provide(client, addresses, signal)
      report()
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof KubeError)) throw error
      report(error)
      delay = retryInterval
    }
    await clock.sleep(delay, signal)
  }
}

async function provide(client: KubeClient, addresses: readonly string[], signal: AbortSignal): Promise<void> {
  try {
    await client.get(core.service, name, namespace, { signal })
  } catch (error) {
    ifThere(error)
    await client.create(core.service, apiService(), { signal })
  }
  for (const slice of apiSlices(addresses)) {
    if ((slice.endpoints as unknown[]).length > 0) await client.apply(core.endpointSlice, slice, { fieldManager }, { signal })
    else await client.delete(core.endpointSlice, slice.metadata.name ?? '', namespace, { signal }).catch(ifThere)
  }
}

/** Ignores that an object does not exist. */
function ifThere(error: unknown): void {
  if (!isNotFound(error)) throw error
}
