/** docs/manifests/cluster-api.yaml: every machine has a configuration and an address, for the release of Kubernetes in the image. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { parseAllDocuments } from 'yaml'
import { ConfigContainer } from '../../src/os/config/container.ts'
import { kubernetesVersion } from '../../src/os/k8s/images.ts'
import { release } from '../../src/release.ts'

const docs = join(import.meta.dir, '../../docs')
const page = readFileSync(join(docs, 'cluster-api.md'), 'utf8')

const metadata = v.strictObject({ name: v.string(), labels: v.optional(v.record(v.string(), v.string())) })
const cidrBlocks = v.strictObject({ cidrBlocks: v.array(v.string()) })
const reference = v.strictObject({ apiVersion: v.string(), kind: v.string(), name: v.string() })
const cluster = v.strictObject({
  apiVersion: v.literal('cluster.x-k8s.io/v1beta1'),
  kind: v.literal('Cluster'),
  metadata,
  spec: v.strictObject({
    clusterNetwork: v.strictObject({ pods: cidrBlocks, services: cidrBlocks, serviceDomain: v.string() }),
    controlPlaneEndpoint: v.strictObject({ host: v.string(), port: v.number() }),
  }),
})
const infrastructure = v.strictObject({
  apiVersion: v.literal('v1'),
  kind: v.literal('ConfigMap'),
  metadata,
  data: v.strictObject({ address: v.string() }),
})
const machine = v.strictObject({
  apiVersion: v.literal('cluster.x-k8s.io/v1beta1'),
  kind: v.literal('Machine'),
  metadata,
  spec: v.strictObject({
    clusterName: v.string(),
    version: v.string(),
    bootstrap: v.strictObject({ configRef: reference }),
    infrastructureRef: reference,
  }),
})
const config = v.strictObject({
  apiVersion: v.literal('bootstrap.cluster.x-k8s.io/v1alpha3'),
  kind: v.literal('TalosConfig'),
  metadata,
  spec: v.strictObject({
    generateType: v.picklist(['controlplane', 'worker']),
    talosVersion: v.string(),
    hostname: v.strictObject({ source: v.literal('MachineName') }),
    strategicPatches: v.array(v.string()),
  }),
})
const node = [infrastructure, machine, config] as const

const documents = parseAllDocuments(readFileSync(join(docs, 'manifests/cluster-api.yaml'), 'utf8'))
const [demo, ...objects] = v.parse(
  v.tuple([cluster, ...node, ...node]),
  documents.map((each) => each.toJS()),
)
const [machines, configs, addresses] = [
  objects.filter(({ kind }) => kind === 'Machine') as v.InferOutput<typeof machine>[],
  objects.filter(({ kind }) => kind === 'TalosConfig') as v.InferOutput<typeof config>[],
  objects.filter(({ kind }) => kind === 'ConfigMap') as v.InferOutput<typeof infrastructure>[],
]

test('the endpoint is the control plane', () => {
  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
  expect(demo.spec.controlPlaneEndpoint).toEqual({ host: addresses[0]?.data.address ?? '', port: 6443 })
})

test.each(machines)('$metadata.name belongs to the cluster and has a configuration of its own', ({ metadata, spec }) => {
  const { name, labels } = metadata
  expect(spec.clusterName).toBe(demo.metadata.name)
  expect(labels).toMatchObject({ 'cluster.x-k8s.io/cluster-name': demo.metadata.name })
  expect(spec.version).toBe(`v${kubernetesVersion}`)
  expect(spec.bootstrap.configRef).toEqual({ apiVersion: 'bootstrap.cluster.x-k8s.io/v1alpha3', kind: 'TalosConfig', name })
  expect(spec.infrastructureRef).toEqual({ apiVersion: 'v1', kind: 'ConfigMap', name })
  const own = configs.find((each) => each.metadata.name === name)
  expect(own?.spec.generateType === 'controlplane').toBe('cluster.x-k8s.io/control-plane' in (labels ?? {}))
})

test.each(configs)('patches of $metadata.name are configurations of this release', ({ spec }) => {
  expect(release.tag).toStartWith(`${spec.talosVersion}.`)
  for (const patch of spec.strategicPatches) expect(ConfigContainer.parse(patch).toString()).toBe(patch)
})

test('the page names the manifest, its machines and their addresses', () => {
  expect(page).toContain('docs/manifests/cluster-api.yaml')
  for (const { metadata, data } of addresses) {
    expect(page).toContain(metadata.name)
    expect(page).toContain(data.address)
  }
})
