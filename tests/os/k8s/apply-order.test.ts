import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import type { KubeClient } from '../../../src/kube/client.ts'
import { KubeError } from '../../../src/kube/errors.ts'
import type { KubeObject } from '../../../src/kube/object.ts'
import { applyManifests } from '../../../src/os/k8s/apply-manifests.ts'

/** An API server that knows namespaces, and records the applied objects. */
function server() {
  const namespaces = new Set(['kube-system'])
  const applied: string[] = []
  const client = {
    kind: async (apiVersion: string, kind: string) => ({ apiVersion, kind, plural: '', namespaced: kind !== 'Namespace' }),
    async get() {
      throw new KubeError(404, 'NotFound', 'not there')
    },
    async apply(_: unknown, object: KubeObject) {
      const { kind, metadata } = object
      const { name = '', namespace } = metadata
      if (namespace && !namespaces.has(namespace)) throw new KubeError(404, 'NotFound', `namespaces "${namespace}" not found`)
      if (kind === 'Namespace') namespaces.add(name)
      applied.push(name)
      return object
    },
  } as unknown as KubeClient
  return { client, applied }
}

const object = (kind: string, name: string, namespace?: string): KubeObject => ({ apiVersion: 'v1', kind, metadata: { name, namespace } })

test('what stands on a namespace of a later manifest comes right after all others, without a wait', async () => {
  const { client, applied } = server()
  await applyManifests(
    client,
    [
      { id: '99-a', objects: [object('ConfigMap', 'guest', 'later')] },
      { id: '99-b', objects: [object('ConfigMap', 'settled', 'kube-system'), object('Namespace', 'later')] },
    ],
    { log: silent, signal: AbortSignal.timeout(5_000) },
  )
  expect(applied).toEqual(['later', 'settled', 'guest', 'talos-bootstrap-manifests-inventory'])
})
